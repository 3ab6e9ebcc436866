//! `doorway status`: the node and its group.

use std::io::Write;

use doorway_client::{Answer, Code, SessionMachine};
use doorway_protocol::{LedgerTrouble, MembersReport, MembersRequest, NodeStatus, Scope};
use serde::Serialize;

use super::members::votes;
use super::print_json;
use crate::service::exit::Exit;
use crate::service::identity::scope;
use crate::service::options::LookArgs;
use crate::service::query::{Query, unexpected_answer};
use crate::service::wait_line::time;

/// Show the node: whose locks it grants, its group, how many locks are held
///
/// It does not start a node: without one the exit code is 69.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    doorway status                                  the node that this user's commands use\n  \
    doorway status --socket /run/doorway/socket     the node of this machine\n  \
    doorway status --json | jq .held")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    node: LookArgs,
}

/// Show the node.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut query = Query::look(&args.node.address)?;
    let answer = query.answer(SessionMachine::status)?;
    let Answer::Status(status) = answer else { return Err(unexpected_answer().into()) };
    let members = members(&mut query, &status)?;
    let arranged = arranged(&mut query)?;
    let ledger = ledger(&mut query)?;
    let report = StatusReport { node: &status, ledger, agreed: members.as_deref(), arranged };
    if args.json { print_json(out, &report) } else { print(out, &report) }
}

/// Everything that the node says about itself and its group.
#[derive(Serialize)]
struct StatusReport<'a> {
    #[serde(flatten)]
    node: &'a NodeStatus,
    /// Why the node cannot write its ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<LedgerTrouble>,
    /// The members of a group that agrees on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    agreed: Option<&'a MembersReport>,
    /// How the rules for locks arrange the members.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arranged: Vec<String>,
}

/// The members of the node's group, if the group agrees on them.
fn members(query: &mut Query, status: &NodeStatus) -> Result<Option<Box<MembersReport>>, Exit> {
    if status.scope != Scope::Cluster || !query.knows_members() {
        return Ok(None);
    }
    match query.answer(|machine, now| machine.members(now, MembersRequest::Show)) {
        Ok(Answer::Members(report)) => Ok(Some(report)),
        Ok(_) => Err(unexpected_answer()),
        // The members are fixed in the settings.
        Err(Exit { refused: Some(Code::NotServed), .. }) => Ok(None),
        Err(exit) => Err(exit),
    }
}

/// How the rules for locks arrange the members.
fn arranged(query: &mut Query) -> Result<Vec<String>, Exit> {
    if !query.knows_members() {
        return Ok(Vec::new());
    }
    match query.answer(|machine, now| machine.members(now, MembersRequest::Arranged))? {
        Answer::Arranged(lines) => Ok(lines),
        _ => Err(unexpected_answer()),
    }
}

/// Why the node cannot write its ledger; none if it can.
fn ledger(query: &mut Query) -> Result<Option<LedgerTrouble>, Exit> {
    if !query.knows_trouble() {
        return Ok(None);
    }
    match query.answer(SessionMachine::ledger)? {
        Answer::Ledger(trouble) => Ok(trouble),
        _ => Err(unexpected_answer()),
    }
}

fn print(out: &mut dyn Write, report: &StatusReport<'_>) -> anyhow::Result<()> {
    let StatusReport { node: status, ledger, agreed, arranged } = report;
    let NodeStatus { node, group, version, pid, up_ms, .. } = status;
    writeln!(out, "node      {node} of group {group}")?;
    writeln!(out, "scope     its locks are those of {}", scope(status.scope))?;
    writeln!(out, "program   doorway {version}, pid {pid}, up {}", time(*up_ms))?;
    match status.view {
        Some(view) => writeln!(out, "view      {view}")?,
        None => writeln!(out, "view      none: the members have not agreed on the next one yet")?,
    }
    if let Some(LedgerTrouble { error, remedy, for_ms }) = ledger {
        writeln!(out, "ledger    has not been writable for {}: {error}", time(*for_ms))?;
        writeln!(out, "          locks are refused; {remedy}")?;
    }
    writeln!(out, "members   {}", status.members.join(" "))?;
    if let Some(report) = agreed {
        match &report.trouble {
            Some(trouble) => writeln!(out, "trouble   {trouble}")?,
            None if report.etcd.is_some() => writeln!(out, "group     {}", votes(report))?,
            None => writeln!(out, "votes     {}", votes(report))?,
        }
        if let Some(differs) = report.rules.as_ref().and_then(|rules| rules.differs.as_ref()) {
            writeln!(out, "rules     {differs}")?;
        }
    }
    for line in arranged {
        writeln!(out, "arranged  {line}")?;
    }
    for absent in &status.away {
        writeln!(
            out,
            "away      {} has been unreachable for {}",
            absent.node,
            time(absent.for_ms)
        )?;
    }
    if let Some(left) = status.reclaiming_ms {
        let left = time(left);
        writeln!(
            out,
            "restart   earlier holders may resume for {left}; until then nothing is granted"
        )?;
    }
    let NodeStatus { sessions, held, waiting, grants, .. } = status;
    writeln!(out, "sessions  {sessions}")?;
    Ok(writeln!(out, "locks     {held} held, {waiting} waiting, {grants} granted since the start")?)
}
