//! `doorway members backup`, and `doorway members init --from`: what a group has agreed on about
//! itself, as a file.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use doorway_daemon::members::VIEW_STEP;
use doorway_protocol::{
    BackupSeat, GroupBackup, MembersReport, MembersRequest, RuleTables, SeatRole,
};

use super::confirm::confirm;
use super::{Init, ask, wait_out};
use crate::commands::print_json;
use crate::service::exit::{self, Exit};
use crate::service::options::LookArgs;
use crate::service::query::Query;

/// Print the backup.
pub(super) fn print(node: &LookArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let report = ask(&mut Query::look(&node.address)?, MembersRequest::Show)?;
    let MembersReport {
        group,
        cluster,
        view,
        lease_ms,
        longest_lease_ms,
        seats,
        rules,
        trouble,
        ..
    } = *report;
    let Some(cluster) = cluster else {
        let why = trouble.unwrap_or_else(|| "the group is not founded yet".to_owned());
        return Err(Exit::new(exit::UNAVAILABLE, why).into());
    };
    let seats = seats.into_iter().map(|seat| BackupSeat {
        name: seat.name,
        address: seat.address,
        seat: seat.seat,
        voter: seat.role != SeatRole::Learner,
    });
    let seats = seats.collect();
    let rules = RuleTables(rules.map(|rules| rules.tables).unwrap_or_default());
    let backup = GroupBackup { group, cluster, view, lease_ms, longest_lease_ms, seats, rules };
    print_json(out, &backup)
}

fn read(file: &Path) -> Result<GroupBackup, Exit> {
    let usage = |text: String| Exit::new(exit::USAGE, text);
    let text = std::fs::read_to_string(file)
        .map_err(|error| usage(format!("cannot read {}: {error}", file.display())))?;
    serde_json::from_str(&text).map_err(|error| {
        usage(format!(
            "{} is not what `doorway members backup` has printed: {error}",
            file.display()
        ))
    })
}

/// Found the group anew from a backup: say what that costs, ask, and do it.
pub(super) fn restore(
    file: &Path,
    args: &Init,
    json: bool,
    query: &mut Query,
    out: &mut dyn Write,
) -> anyhow::Result<Box<MembersReport>> {
    let backup = read(file)?;
    let Init { lease, above, yes, .. } = args;
    let request = |check| {
        let backup = Box::new(backup.clone());
        MembersRequest::Restore { backup, lease_ms: *lease, above: *above, check }
    };
    ask(query, request(true))?;
    if !json {
        write!(out, "{}", costs(&backup, *above))?;
        out.flush()?;
    }
    confirm("This cannot be undone.", *yes)?;
    let lease = Duration::from_millis(backup.longest_lease_ms.into());
    if json {
        wait_out(lease, &mut std::io::sink())?;
    } else {
        wait_out(lease, out)?;
    }
    query.be_patient();
    Ok(ask(query, request(false))?)
}

/// What it costs.
fn costs(backup: &GroupBackup, above: u64) -> String {
    let GroupBackup { group, view, longest_lease_ms, seats, .. } = backup;
    let names: Vec<&str> = seats.iter().map(|seat| seat.name.as_str()).collect();
    let (names, lease) = (names.join(", "), f64::from(*longest_lease_ms) / 1000.0);
    let next = (*view).max(above) + VIEW_STEP;
    format!(
        "the group {group} will begin anew from a backup of its view {view}, with the machines in \
         `join` of this node:\n\
         - Stop the machines of the old group for good: {names}. If they still run, they grant the \
         same locks.\n\
         - What the group agreed on after the backup is lost.\n\
         - Locks that are held are lost, also those with long leases or without end: the backup \
         has none. Make sure that nobody uses them.\n\
         - It takes {lease} s, the longest lease of a node in the backup, and a little more, \
         because clocks differ: until then clients may believe in their locks. If the lease was \
         made longer after the backup, wait for that time first.\n\
         - If the group was recovered or begun anew after the backup, stop here, and add --above \
         with the highest view that it has reached.\n\
         - Views, and with them fences, jump from {view} to {next}.\n"
    )
}
