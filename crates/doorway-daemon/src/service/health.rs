//! Whether the node serves, and if not, why.

use doorway_protocol::{Absent, LedgerTrouble, NodeStatus};

use super::Service;

impl Service {
    /// The view in which the node serves and the members that are away, or the reason why the node
    /// does not serve.
    pub(crate) fn serving(&self) -> Result<(u64, Vec<Absent>), String> {
        let status = self.status();
        if self.is_stopping() {
            return Err("the node is stopping".to_owned());
        }
        if let Some(time) = status.reclaiming_ms {
            return Err(format!(
                "the node waits, for {time} ms at most, for clients that held locks before it \
                 crashed"
            ));
        }
        if let Some(LedgerTrouble { error, remedy, .. }) = self.ledger_trouble() {
            return Err(format!("the ledger of sessions cannot be written: {error}; {remedy}"));
        }
        // A group that agrees on its members has a majority of its own, which is not that of the
        // members in the view.
        let trouble = match self.members_report() {
            Some(report) => report.trouble,
            None => majority_away(&status).map(|away| format!("{away}; start or reconnect them")),
        };
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        let Some(view) = status.view else {
            let away: Vec<&str> = status.away.iter().map(|member| member.node.as_str()).collect();
            let away = if away.is_empty() { "none".to_owned() } else { away.join(", ") };
            return Err(format!("the members have not agreed on a view; members away: {away}"));
        };
        Ok((view, status.away))
    }
}

/// Says which members of a group with fixed members are away, if these are the majority.
pub(crate) fn majority_away(status: &NodeStatus) -> Option<String> {
    let NodeStatus { members, away, .. } = status;
    if 2 * away.len() <= members.len() {
        return None;
    }
    let times: Vec<String> =
        away.iter().map(|it| format!("{} for {} s", it.node, it.for_ms / 1000)).collect();
    Some(format!("{} of {} members are away: {}", away.len(), members.len(), times.join(", ")))
}
