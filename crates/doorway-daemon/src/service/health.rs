//! Whether the node serves, and if not, why.

use doorway_protocol::{Absent, LedgerTrouble, NodeStatus};

use super::Service;

impl Service {
    /// The view in which the node serves and the members that are away, or the reason why the node
    /// does not serve.
    pub(crate) fn serving(&self) -> Result<(u64, Vec<Absent>), String> {
        let status = self.status();
        let grants = self.0.core.lock().sessions.check_grants();
        grants.map_err(|refusal| refusal.text)?;
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
            None => half_away(&status).map(|away| format!("{away}; start or reconnect them")),
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

/// Says which members of a group with fixed members are away, if these are half of them or more.
/// Then no algorithm can grant a lock that is held by nobody: even a majority needs one of them.
pub(crate) fn half_away(status: &NodeStatus) -> Option<String> {
    let NodeStatus { members, away, .. } = status;
    if 2 * away.len() < members.len() {
        return None;
    }
    let times: Vec<String> =
        away.iter().map(|it| format!("{} for {} s", it.node, it.for_ms / 1000)).collect();
    let (away, all) = (away.len(), members.len());
    Some(format!("half or more of the members are away, {away} of {all}: {}", times.join(", ")))
}

#[cfg(test)]
mod tests {
    use doorway_protocol::Scope;

    use super::*;

    /// The status of a node in a group of this many members, of which some are away.
    fn status(members: usize, away: usize) -> NodeStatus {
        let name = |at: usize| format!("n{at}");
        NodeStatus {
            node: name(0),
            group: "group".to_owned(),
            version: String::new(),
            scope: Scope::Cluster,
            pid: 1,
            up_ms: 0,
            view: Some(1),
            members: (0..members).map(name).collect(),
            away: (1..=away).map(|at| Absent { node: name(at), for_ms: 3000 }).collect(),
            reclaiming_ms: None,
            sessions: 0,
            held: 0,
            waiting: 0,
            grants: 0,
        }
    }

    #[test]
    fn without_a_majority_the_node_does_not_serve() {
        for (members, away) in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)] {
            assert_eq!(half_away(&status(members, away)), None, "{away} of {members}");
        }
        for (members, away) in [(2, 1), (3, 2), (4, 2), (4, 3)] {
            let told = half_away(&status(members, away)).unwrap_or_default();
            let begin = format!("half or more of the members are away, {away} of {members}: n1 ");
            assert!(told.starts_with(&begin), "{told}");
        }
    }
}
