//! `doorway members log`: what operators did.

use std::io::Write;

use doorway_client::Answer;
use doorway_protocol::{AuditEntry, MembersRequest};

use crate::service::options::LookArgs;
use crate::service::query::{Query, unexpected_answer};

/// Print all entries, the oldest first. The node answers with some of them at a time.
pub(super) fn run(node: &LookArgs, json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut query = Query::look(&node.address)?;
    let mut last = 0;
    loop {
        let request = MembersRequest::Log(last);
        let answer = query.answer(|machine, now| machine.members(now, request))?;
        let Answer::Audit(entries) = answer else { return Err(unexpected_answer().into()) };
        let Some(newest) = entries.last() else { return Ok(()) };
        last = newest.number;
        for entry in &entries {
            if json {
                serde_json::to_writer(&mut *out, entry)?;
                writeln!(out)?;
            } else {
                let AuditEntry { at, node, who, from, what, result, .. } = entry;
                writeln!(out, "{at}  {who} at {node} ({from}): {what}: {result}")?;
            }
        }
    }
}
