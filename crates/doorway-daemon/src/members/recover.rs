//! Going on with one machine after the majority of the voters is lost for ever, while its node does
//! not run.

use std::fmt;
use std::time::Duration;

use doorway_members::{RecoverError, Survivor};
use doorway_node::members::Seat;
use doorway_node::{MemberConfig, TlsConfig};
use doorway_protocol::AuditEntry;

use crate::doctor;
use crate::settings::Settings;

/// How long the other machines may take to answer, all together.
const ANSWERS: Duration = Duration::from_secs(7);

/// What `doorway members recover --alone` would do, and what it costs.
pub struct Recovery {
    survivor: Survivor,
    group: String,
    address: String,
    seen: Option<u64>,
    longest_ms: Option<u32>,
    tls: Option<TlsConfig>,
}

/// Why a machine cannot go on alone.
#[derive(Debug, thiserror::Error)]
pub enum NoRecovery {
    /// The settings are those of another kind of group.
    #[error("the settings have no [members]: only a group that agrees on its members is recovered")]
    Fixed,
    /// Machines of the group still run.
    #[error(
        "{0}: as long as a majority of the old group runs, it grants the same locks; stop these \
         machines for good, or add --force if they cannot harm; nothing was changed"
    )]
    Alive(String),
    /// The group agrees by etcd.
    #[error(
        "the members agree by etcd, so no machine of the group has a record with which it could go \
         on alone, and no majority of them is needed: any machine goes on when etcd answers. If \
         etcd has lost its majority, recover etcd as its manual says; other machines that are lost \
         for ever are removed with `doorway members remove`"
    )]
    Etcd,
    /// The data directory cannot be used.
    #[error(transparent)]
    Data(#[from] RecoverError),
}

impl Recovery {
    /// Look at the data directory of a node that does not run. Until this is dropped, it cannot be
    /// started. If the operator names them, the old group has reached the view `seen`, and its
    /// nodes have had leases of `longest_ms`.
    pub fn prepare(
        settings: &Settings,
        seen: Option<u64>,
        longest_ms: Option<u32>,
    ) -> Result<Self, NoRecovery> {
        let (Some(members), Some(data)) = (&settings.members, &settings.node.data) else {
            return Err(NoRecovery::Fixed);
        };
        if members.etcd.is_some() {
            return Err(NoRecovery::Etcd);
        }
        let survivor = Survivor::open(data, seen)?;
        let (group, address) = (settings.node.group.clone(), members.address.clone());
        let tls = settings.node.tls.clone();
        Ok(Self { survivor, group, address, seen, longest_ms, tls })
    }

    /// Refuse if other machines of the group answer.
    pub fn check_alone(&self) -> Result<(), NoRecovery> {
        let Some(tls) = &self.tls else { return Ok(()) };
        let (record, own) = (self.survivor.record(), self.survivor.seat().id);
        let others = record.seats.iter().filter(|seat| seat.id != own);
        let others = others
            .map(|seat| MemberConfig { name: seat.name.clone(), address: seat.address.clone() });
        let alive = doctor::answering(others.collect(), &self.group, tls, ANSWERS);
        if alive.is_empty() {
            return Ok(());
        }
        let alive = alive.iter().map(|it| format!("{} answers at {}", it.name, it.address));
        Err(NoRecovery::Alive(alive.collect::<Vec<_>>().join(", ")))
    }

    /// How long a node of the old group that does not run any more may have promised locks to its
    /// clients. The new group must not grant before [`wait_out`](fn@super::wait_out) has waited for
    /// the end of such a promise.
    ///
    /// The disk may be older than the newest lease of the group. So the longer lease of both
    /// counts, that on the disk and that which the operator has named.
    pub fn lease(&self) -> Duration {
        let known = self.survivor.record().longest_lease_ms();
        Duration::from_millis(known.max(self.longest_ms.unwrap_or_default()).into())
    }

    /// Do it, after the wait for [`Recovery::lease`]. Returns what there is to do then.
    pub fn perform(self) -> Result<String, NoRecovery> {
        let Self { survivor, group, address, seen, longest_ms, tls: _ } = self;
        let seen = seen.map(|seen| format!(" --view-at-least {seen}")).unwrap_or_default();
        let lease = longest_ms.map(|lease| format!(" --lease {lease}ms")).unwrap_or_default();
        let (name, view) = (survivor.seat().name.clone(), survivor.next_view());
        let uid = rustix::process::geteuid().as_raw();
        let entry = AuditEntry {
            at: super::audit::now(),
            node: name.clone(),
            who: format!("uid {uid}"),
            from: "the data directory, while the node was stopped".to_owned(),
            what: format!("recover --alone{seen}{lease}"),
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
        writeln!(f, "- Changes that the group agreed on without node {name} are lost.")?;
        writeln!(
            f,
            "- Locks that are held are lost. Those of long leases or without end stay closed for \
             their whole time, or until `doorway break`, if node {name} knows of them. Those that \
             the group agreed on without node {name} are open at once: make sure that nobody uses \
             them."
        )?;
        let lease = self.lease().as_secs_f64();
        writeln!(
            f,
            "- It takes {lease} s, the longest lease of a node that is known here, and a little \
             more, because clocks differ: until then clients may believe in their locks. If the \
             lease was made longer without node {name}, stop here, and add --lease with that time."
        )?;
        write!(f, "- Views, and with them fences, jump from {view} to {next}.")
    }
}
