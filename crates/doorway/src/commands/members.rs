//! `doorway members`: the members of a group that agrees on them.

mod backup;
mod confirm;
mod log;
mod recover;
mod rules;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use doorway_client::{Answer, Moment};
use doorway_daemon::members::{deviations, full_wait};
use doorway_protocol::{
    EtcdReport, MembersReport, MembersRequest, RulesReport, SeatReport, SeatRole, SeatState,
};
use serde::Serialize;

use super::print_json;
use crate::numbers::whole;
use crate::service::exit::{self, Exit};
use crate::service::options::{LookArgs, seconds};
use crate::service::query::{Query, unexpected_answer};
use crate::service::wait_line::time;
use crate::table::Table;

/// How often to look while waiting.
const LOOK: Duration = Duration::from_millis(200);

/// How long `--wait` without a time waits, in seconds: ten years, which is for ever.
const LONGEST_WAIT: &str = "315360000";

/// Show or change the members of a group that agrees on them
///
/// Such a group has `[members]` in the settings of its nodes. Machines are added, removed and
/// replaced while the others work. Without a task the command shows all machines with their role
/// and state as the node sees them, and how many votes are left. Changes need root or the user of
/// the node, at its Unix socket.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    doorway members                           show the members\n  \
    doorway members --wait 1m                 wait until all of them are in the view\n  \
    doorway members init                      found the group, once, at one node\n  \
    doorway members add d d.example:7001      add a machine\n  \
    doorway members replace c                 let a machine with a new disk in again\n  \
    doorway members rules doorway.toml        change the rules for locks")]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Option<Task>,

    #[command(flatten)]
    show: Show,
}

#[derive(clap::Args)]
struct Show {
    /// Wait until all machines are in the view that runs at this node, at most this long, in
    /// seconds or as 500ms or 10m [without a time: for ever]
    #[arg(short, long, value_name = "SECS", num_args = 0..=1, value_parser = seconds)]
    #[arg(default_missing_value = LONGEST_WAIT)]
    wait: Option<Duration>,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    node: LookArgs,
}

#[derive(Subcommand)]
enum Task {
    Init(Init),
    Add(Add),
    Remove(Remove),
    Replace(Replace),
    Lease(Lease),
    /// Print what the group has agreed on, as JSON: its number, view, lease, machines and rules
    ///
    /// Keep it to know what the group looked like. If all its machines are lost, `doorway members
    /// init --from FILE` begins anew from it. A data directory must never be copied back.
    Backup,
    /// Show what operators did: who, when, from where, and what came of it
    ///
    /// The log has `break`, `init`, `add`, `remove`, `replace`, `lease`, `rules` and `recover`, the
    /// last 1,000 of them. It is the same at all members. With --json each entry is one line.
    Log,
    Recover(recover::Args),
    Rules(rules::Args),
}

/// Found the group, with this node and the machines of `join` in its settings
///
/// Every machine has to run and to answer. A group is founded once, at one of its nodes.
#[derive(clap::Args)]
struct Init {
    /// Use this lease, from 2 seconds to 5 minutes [default: `lease` of the node's settings, 10
    /// seconds]
    #[arg(long, value_name = "TIME", value_parser = lease)]
    lease: Option<u32>,

    /// Take over a group with a fixed list of members: fences go on growing, and locks that are
    /// held stay held. All of its nodes must have been stopped, and started again with `[members]`
    /// in their settings
    #[arg(long, group = "former")]
    from_fixed: bool,

    /// Begin anew from what `doorway members backup` has printed, because all machines of the group
    /// are lost: with its rules and its lease, and above its view. Every machine needs an empty
    /// data directory. The command says first what that costs, and asks
    #[arg(long, value_name = "FILE", group = "former")]
    from: Option<PathBuf>,

    /// With --from-fixed or --from: begin above this view. Give the highest view that `doorway
    /// status` has shown if machines of the fixed group do not come along, or if the backup is old
    #[arg(
        long,
        value_name = "VIEW",
        requires = "former",
        default_value_t = 0,
        value_parser = whole(0..=u64::MAX),
    )]
    above: u64,

    /// With --from: do it without asking
    #[arg(long, requires = "from")]
    yes: bool,
}

/// Add a machine, which has to run
///
/// It needs a certificate for its name and `[members]` in its settings. It votes if the number of
/// voters can grow to the next odd number, up to five; otherwise it only takes part.
#[derive(clap::Args)]
struct Add {
    /// The name of its node
    name: String,
    /// Its address, HOST:PORT, at which the other members reach it
    address: String,
    /// Say which locks would be served otherwise than their rules say, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Remove a machine for good
///
/// Clients of that machine lose their locks. To let it in again, start it with an empty data
/// directory and add it.
#[derive(clap::Args)]
struct Remove {
    /// The name of its node
    name: String,
    /// Remove it even if the voters that are left have no majority that can be reached
    #[arg(long)]
    force: bool,
    /// Say which locks would be served otherwise than their rules say, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Let a machine with a new disk in again, in place of its old self
///
/// The machine has to run with an empty data directory, under its old name and address.
#[derive(clap::Args)]
struct Replace {
    /// The name of its node
    name: String,
}

/// Change the lease: how long the group waits for a silent machine
#[derive(clap::Args)]
struct Lease {
    /// The lease, from 2 seconds to 5 minutes, in seconds or as 500ms or 1m
    #[arg(value_name = "TIME", value_parser = lease)]
    time: u32,
}

/// Show or change the members.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let Args { task, show: Show { wait, json, node } } = args;
    let Some(task) = task else { return show(*wait, *json, node, out) };
    if wait.is_some() {
        let text =
            "--wait goes with no task: change the members first, then `doorway members --wait`";
        return Err(Exit::new(exit::USAGE, text).into());
    }
    let request = match task {
        Task::Backup => return backup::print(node, out),
        Task::Log => return log::run(node, *json, out),
        Task::Recover(args) => return recover::run(args, out),
        Task::Rules(args) => return rules::run(args, node, *json, out),
        Task::Init(init @ Init { from: Some(file), .. }) => {
            let mut query = Query::look(&node.address)?;
            let report = backup::restore(file, init, *json, &mut query, out)?;
            return if *json { print_json(out, &report) } else { founded(&report, out) };
        }
        Task::Init(Init { lease, from_fixed, above, .. }) => {
            MembersRequest::Init { lease_ms: *lease, from_fixed: from_fixed.then_some(*above) }
        }
        Task::Add(Add { name, address, .. }) => {
            check_address(address)?;
            MembersRequest::Add { name: name.clone(), address: address.clone() }
        }
        Task::Remove(Remove { name, force, .. }) => {
            MembersRequest::Remove { name: name.clone(), force: *force }
        }
        Task::Replace(Replace { name }) => MembersRequest::Replace { name: name.clone() },
        Task::Lease(Lease { time }) => MembersRequest::Lease(*time),
    };
    let mut query = Query::look(&node.address)?;
    if let Task::Add(Add { dry_run, .. }) | Task::Remove(Remove { dry_run, .. }) = task {
        foretell(&mut query, &request, *dry_run, *json, out)?;
        if *dry_run {
            return Ok(());
        }
    }
    let report = ask(&mut query, request)?;
    if *json {
        return print_json(out, &report);
    }
    let group = &report.group;
    match task {
        Task::Init(_) => founded(&report, out),
        Task::Add(Add { name, .. }) => {
            Ok(writeln!(out, "added {name} to the group {group}: {}", votes(&report))?)
        }
        Task::Remove(Remove { name, .. }) => {
            Ok(writeln!(out, "removed {name} from the group {group}: {}", votes(&report))?)
        }
        Task::Replace(Replace { name, .. }) => {
            Ok(writeln!(out, "replaced {name} in the group {group}: {}", votes(&report))?)
        }
        Task::Lease(_) => Ok(writeln!(out, "the lease is {} now", time(report.lease_ms.into()))?),
        Task::Backup | Task::Log | Task::Recover(_) | Task::Rules(_) => Ok(()),
    }
}

fn founded(report: &MembersReport, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "founded the group {}:", report.group)?;
    print(out, report)
}

/// What `--dry-run --json` prints.
#[derive(Serialize)]
struct Forecast {
    /// The members that the group would have.
    members: Vec<String>,
    /// Which locks would be served otherwise than their rules say, and why.
    deviations: Vec<String>,
}

/// Say beforehand which locks will be served otherwise than their rules say, once the change that
/// was asked for is made.
fn foretell(
    query: &mut Query,
    request: &MembersRequest,
    dry_run: bool,
    json: bool,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let report = ask(query, MembersRequest::Show)?;
    let mut members: Vec<String> = report.seats.iter().map(|seat| seat.name.clone()).collect();
    match request {
        MembersRequest::Add { name, .. } if !members.contains(name) => members.push(name.clone()),
        MembersRequest::Remove { name, .. } => members.retain(|member| member != name),
        _ => {}
    }
    members.sort_unstable();
    let rules = report.rules.as_ref().map_or(&[][..], |rules| &rules.tables);
    let deviations = deviations(rules, &members);
    if json {
        return if dry_run { print_json(out, &Forecast { members, deviations }) } else { Ok(()) };
    }
    let all = members.join(" ");
    for deviation in &deviations {
        writeln!(out, "with the members {all}, {deviation}")?;
    }
    if dry_run && deviations.is_empty() {
        writeln!(out, "with the members {all}, all locks are served as their rules say")?;
    }
    Ok(out.flush()?)
}

/// Wait until no client can count on a lease of this length that a node of a former group had, and
/// say so before.
fn wait_out(lease: Duration, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "waiting for {:.1} s", full_wait(lease).as_secs_f64())?;
    out.flush()?;
    doorway_daemon::members::wait_out(lease);
    Ok(())
}

fn ask(query: &mut Query, request: MembersRequest) -> Result<Box<MembersReport>, Exit> {
    match query.answer(|machine, now| machine.members(now, request))? {
        Answer::Members(report) => Ok(report),
        _ => Err(unexpected_answer()),
    }
}

fn show(
    wait: Option<Duration>,
    json: bool,
    node: &LookArgs,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut query = Query::look(&node.address)?;
    let mut report = ask(&mut query, MembersRequest::Show)?;
    let until = wait.map(|wait| Moment::now().after(wait));
    while let Some(until) = until
        && !is_complete(&report)
        && Moment::now() < until
    {
        query.be_patient();
        let pause = Moment::now().after(LOOK).min(until);
        while Moment::now() < pause {
            query.pause(pause)?;
        }
        report = ask(&mut query, MembersRequest::Show)?;
    }
    if json {
        print_json(out, &report)?;
    } else {
        print(out, &report)?;
    }
    if until.is_some() && !is_complete(&report) {
        return Err(Exit::new(1, not_complete(&report)).into());
    }
    Ok(())
}

/// Whether all machines are in the view that runs at the node.
fn is_complete(report: &MembersReport) -> bool {
    let all = report.seats.iter().all(|seat| seat.state == SeatState::InView);
    all && !report.seats.is_empty() && report.running == Some(report.view)
}

fn not_complete(report: &MembersReport) -> String {
    let missing = report.seats.iter().filter(|seat| seat.state != SeatState::InView);
    let missing: Vec<&str> = missing.map(|seat| seat.name.as_str()).collect();
    match &report.trouble {
        Some(trouble) => trouble.clone(),
        None if missing.is_empty() => format!("view {} does not run here yet", report.view),
        None => format!("not in the view in time: {}", missing.join(", ")),
    }
}

fn print(out: &mut dyn Write, report: &MembersReport) -> anyhow::Result<()> {
    if report.cluster.is_none() {
        let why = report.trouble.as_deref().unwrap_or("the group is not founded yet");
        return Ok(writeln!(out, "{why}")?);
    }
    let mut table =
        Table::new(["name", "address", "role", "state", "last beat"].map(str::to_owned));
    for seat in &report.seats {
        table.row([
            seat.name.clone(),
            seat.address.clone(),
            role(seat.role).to_owned(),
            state(seat),
            seat.beat_ms.map_or_else(|| "-".to_owned(), |age| format!("{} ago", time(age))),
        ]);
    }
    table.print(out, 0)?;
    // Without a quorum, the line about votes says it all.
    let is_told = report.no_quorum_ms.is_some() && report.etcd.is_none();
    if let Some(trouble) = report.trouble.as_ref().filter(|_| !is_told) {
        writeln!(out, "{}: {trouble}", report.node)?;
    }
    if let Some(RulesReport { digest, differs, .. }) = &report.rules {
        writeln!(out, "rules {digest}")?;
        if let Some(differs) = differs {
            writeln!(out, "{}: {differs}", report.node)?;
        }
    }
    Ok(writeln!(out, "{}", votes(report))?)
}

fn role(role: SeatRole) -> &'static str {
    match role {
        SeatRole::Leader => "leader",
        SeatRole::Voter => "voter",
        SeatRole::Learner => "learner",
        SeatRole::Member => "member",
    }
}

fn state(seat: &SeatReport) -> String {
    match (seat.state, seat.away_ms) {
        (SeatState::InView, _) => "in view".to_owned(),
        (SeatState::Waiting, _) if seat.waiting_for.is_empty() => "waiting".to_owned(),
        (SeatState::Waiting, _) => format!("waiting for {}", seat.waiting_for.join(", ")),
        (SeatState::Away, Some(away)) => format!("away {}", time(away)),
        (SeatState::Away, None) => "away".to_owned(),
        (SeatState::Evicted, _) => "evicted".to_owned(),
    }
}

/// How many votes can be reached, and what the loss of another one would mean; or how etcd is.
pub(crate) fn votes(report: &MembersReport) -> String {
    if let Some(etcd) = &report.etcd {
        return etcd_state(etcd);
    }
    let MembersReport { voters, reachable, .. } = report;
    let majority = voters / 2 + 1;
    let counts = format!("{reachable} of {voters} vote{}", if *voters == 1 { "" } else { "s" });
    match reachable.checked_sub(majority) {
        None => {
            let is_missing = |seat: &&SeatReport| {
                seat.role != SeatRole::Learner && seat.state == SeatState::Away
            };
            let missing = report.seats.iter().filter(is_missing).map(|seat| seat.name.as_str());
            let missing = missing.collect::<Vec<_>>().join(" or ");
            let start =
                if missing.is_empty() { String::new() } else { format!("; start {missing}") };
            let since = report.no_quorum_ms.map(|lost| format!(" for {}", time(lost)));
            format!("{counts}{}: no locks are granted{start}", since.unwrap_or_default())
        }
        Some(0) => format!("{counts}; one more loss stops all locks"),
        Some(1) => format!("{counts}; one more loss stops nothing"),
        Some(more) => format!("{counts}; {more} more losses stop nothing"),
    }
}

/// Whether the etcd by which the members agree answers.
fn etcd_state(etcd: &EtcdReport) -> String {
    let EtcdReport { addresses, unreachable_ms, warning } = etcd;
    let addresses = addresses.join(", ");
    match (unreachable_ms, warning) {
        (Some(away), _) => {
            format!("agreed by etcd at {addresses}, which cannot be reached for {}", time(*away))
        }
        (None, Some(warning)) => format!("agreed by etcd at {addresses}; {warning}"),
        (None, None) => format!("agreed by etcd at {addresses}, which answers; nobody votes"),
    }
}

/// Parses a lease, into milliseconds.
fn lease(text: &str) -> Result<u32, String> {
    let time = seconds(text)?;
    let range = Duration::from_secs(2)..=Duration::from_mins(5);
    if !range.contains(&time) {
        return Err("a lease takes 2 seconds to 5 minutes".to_owned());
    }
    Ok(time.as_millis() as u32)
}

fn check_address(address: &str) -> Result<(), Exit> {
    let parts = address.rsplit_once(':');
    if parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        return Ok(());
    }
    let text = format!("'{address}' is not an address: give HOST:PORT, as d.example:7001");
    Err(Exit::new(exit::USAGE, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(voters: u32, reachable: u32) -> MembersReport {
        let seat = |index: u32| SeatReport {
            name: format!("n{index}"),
            address: format!("n{index}:1"),
            seat: index.to_string(),
            role: SeatRole::Voter,
            state: if index < reachable { SeatState::InView } else { SeatState::Away },
            away_ms: (index >= reachable).then_some(42_000),
            beat_ms: Some(if index < reachable { 400 } else { 42_300 }),
            waiting_for: Vec::new(),
        };
        MembersReport {
            node: "n0".to_owned(),
            group: "shop".to_owned(),
            cluster: Some("1".to_owned()),
            view: 4,
            running: Some(4),
            lease_ms: 10_000,
            longest_lease_ms: 10_000,
            lease_left_ms: 9000,
            seats: (0..voters).map(seat).collect(),
            voters,
            reachable,
            no_quorum_ms: None,
            trouble: None,
            etcd: None,
            rules: None,
        }
    }

    #[test]
    fn the_votes_say_what_another_loss_would_mean() {
        let said = [(3, 3), (3, 2), (3, 1), (5, 5), (1, 1)]
            .map(|(voters, reachable)| votes(&report(voters, reachable)));
        assert_eq!(
            said,
            [
                "3 of 3 votes; one more loss stops nothing",
                "2 of 3 votes; one more loss stops all locks",
                "1 of 3 votes: no locks are granted; start n1 or n2",
                "5 of 5 votes; 2 more losses stop nothing",
                "1 of 1 vote; one more loss stops all locks",
            ]
        );
    }

    #[test]
    fn the_votes_say_for_how_long_there_was_no_quorum() {
        let lost = MembersReport { no_quorum_ms: Some(42_000), ..report(3, 1) };
        let said = "1 of 3 votes for 42 s: no locks are granted; start n1 or n2";
        assert_eq!(votes(&lost), said);
        let mut out = Vec::new();
        print(&mut out, &lost).unwrap();
        assert!(String::from_utf8(out).unwrap().ends_with(&format!("{said}\n")));
    }

    #[test]
    fn the_table_shows_every_machine() {
        let mut out = Vec::new();
        print(&mut out, &report(3, 2)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("n2    n2:1     voter  away 42 s  42 s ago\n"), "{text}");
        let mut waits = report(3, 3);
        waits.seats[1].state = SeatState::Waiting;
        waits.seats[1].waiting_for = vec!["n0".to_owned(), "n2".to_owned()];
        waits.seats[2].beat_ms = None;
        let mut out = Vec::new();
        print(&mut out, &waits).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("n1    n1:1     voter  waiting for n0, n2  0.4 s ago\n"), "{text}");
        assert!(text.contains("n2    n2:1     voter  in view             -\n"), "{text}");
        assert!(!is_complete(&report(3, 2)) && is_complete(&report(3, 3)));
        assert_eq!(not_complete(&report(3, 2)), "not in the view in time: n2");
    }
}
