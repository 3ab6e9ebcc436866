//! Looks at how a group agrees on its members (at its votes, or at its etcd), and at its rules.

use doorway_protocol::{EtcdReport, MembersReport, RulesReport};

use super::Finding;

/// Whether the settings of the node have the rules for locks of its group.
pub(super) fn rules(members: Option<&MembersReport>) -> Option<Finding> {
    let RulesReport { digest, differs, .. } = members?.rules.as_ref()?;
    Some(match differs.as_ref().map(|text| text.split_once("): ").unwrap_or((text, ""))) {
        Some((what, remedy)) => Finding::warning("rules", format!("{what})"), remedy),
        None => Finding::ok("rules", format!("the settings have the rules of the group, {digest}")),
    })
}

/// How many machines may fail before nothing is granted any more.
pub(super) fn count(members: Option<&MembersReport>) -> Option<Finding> {
    let MembersReport { cluster, voters, reachable, etcd, .. } = members?;
    if let Some(etcd) = etcd {
        return Some(etcd_answers(etcd));
    }
    cluster.as_ref()?;
    let what = format!("{reachable} of {voters} voters can be reached");
    let majority = voters / 2 + 1;
    Some(if reachable < &majority {
        let remedy = format!("start machines until {majority} can be reached");
        Finding::wrong("votes", format!("{what}: no locks are granted"), remedy)
    } else if reachable < voters {
        let remedy = "start the others, or replace or remove them with `doorway members`";
        Finding::warning("votes", what, remedy)
    } else {
        Finding::ok("votes", what)
    })
}

/// Whether the running node can use its etcd.
fn etcd_answers(etcd: &EtcdReport) -> Finding {
    let EtcdReport { addresses, unreachable_ms, warning } = etcd;
    let addresses = addresses.join(", ");
    if let Some(time) = unreachable_ms {
        let what = format!("etcd cannot be reached for {} s: {addresses}", time / 1000);
        return Finding::wrong("etcd", what, "start etcd, or correct `etcd` and its certificates");
    }
    match warning {
        Some(warning) => Finding::warning("etcd", warning.clone(), "see the manual of etcd"),
        None => Finding::ok("etcd", format!("etcd answers: {addresses}")),
    }
}
