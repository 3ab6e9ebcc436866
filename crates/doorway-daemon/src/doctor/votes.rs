//! Looks at the votes of a group that agrees on its members.

use doorway_protocol::MembersReport;

use super::Finding;

/// How many machines may fail before nothing is granted any more.
pub(super) fn count(members: Option<&MembersReport>) -> Option<Finding> {
    let MembersReport { cluster, voters, reachable, .. } = members?;
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
