//! Going on with one machine after the majority of the voters is lost for ever, while its node does
//! not run.

use std::fmt;

use doorway_members::{RecoverError, Survivor};
use doorway_node::members::Seat;
use doorway_protocol::AuditEntry;

use crate::settings::Settings;

/// What `doorway members recover --alone` would do, and what it costs.
pub struct Recovery {
    survivor: Survivor,
    group: String,
    address: String,
}

/// Why a machine cannot go on alone.
#[derive(Debug, thiserror::Error)]
pub enum NoRecovery {
    /// The settings are those of another kind of group.
    #[error("the settings have no [members]: only a group that agrees on its members is recovered")]
    Fixed,
    /// The data directory cannot be used.
    #[error(transparent)]
    Data(#[from] RecoverError),
}

impl Recovery {
    /// Look at the data directory of a node that does not run. Until this is dropped, it cannot be
    /// started.
    pub fn prepare(settings: &Settings) -> Result<Self, NoRecovery> {
        let (Some(members), Some(data)) = (&settings.members, &settings.node.data) else {
            return Err(NoRecovery::Fixed);
        };
        let survivor = Survivor::open(data)?;
        let (group, address) = (settings.node.group.clone(), members.address.clone());
        Ok(Self { survivor, group, address })
    }

    /// Do it. Returns what there is to do then.
    pub fn perform(self) -> Result<String, NoRecovery> {
        let Self { survivor, group, address } = self;
        let (name, view) = (survivor.seat().name.clone(), survivor.next_view());
        let uid = rustix::process::geteuid().as_raw();
        let entry = AuditEntry {
            at: super::audit::now(),
            node: name.clone(),
            who: format!("uid {uid}"),
            from: "the data directory, while the node was stopped".to_owned(),
            what: "recover --alone".to_owned(),
            result: "done".to_owned(),
            ..AuditEntry::default()
        };
        let cluster = u128::from_le_bytes(crate::service::secret().0);
        survivor.found_alone(address, cluster, &entry)?;
        Ok(format!(
            "founded the group {group} with {name} alone, at view {view}: start its node, and then \
             add other machines with `doorway members add NAME ADDRESS`"
        ))
    }
}

/// What it costs.
impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (record, seat) = (self.survivor.record(), self.survivor.seat());
        let Seat { name, .. } = seat;
        let others = record.seats.iter().filter(|other| other.id != seat.id);
        let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        let (view, next) = (record.number, self.survivor.next_view());
        writeln!(f, "{name} will go on alone, as a new group, from what its disk shows:")?;
        if !others.is_empty() {
            writeln!(
                f,
                "- Stop {} for good. A majority of the old group that still runs would grant the \
                 same locks.",
                others.join(", ")
            )?;
            writeln!(
                f,
                "- To come back, such a machine needs an empty data directory and `doorway members \
                 add`."
            )?;
        }
        writeln!(f, "- Changes that the group agreed on without {name} are lost.")?;
        writeln!(
            f,
            "- Locks that are held are lost. Those of long leases stay closed for their whole \
             time, or until `doorway break`."
        )?;
        write!(f, "- Views, and with them fences, jump from {view} to {next}.")
    }
}
