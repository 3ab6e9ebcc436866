//! Founding a group anew from a backup, because all machines of the former group are lost.
//!
//! A backup has no locks and no votes. So it is only put into machines that belong to no group, and
//! only if no machine of the former group answers: that group may still grant locks. The new group
//! has another number, and begins with a higher view, so that fences do not go back. For that, the
//! backup must be younger than the last recovery or restore, or the operator gives a view.

use doorway_node::members::AgreedRules;
use doorway_protocol::{Code, GroupBackup, Refusal};
use doorway_sessions::refusals::refusal;

use super::Members;
use super::former::first_view;

impl Members {
    /// The first view of a group that begins from this backup, if it can. `above` is a view that
    /// the operator knows, or 0.
    pub(super) async fn check_backup(
        &self,
        backup: &GroupBackup,
        above: u64,
    ) -> Result<u64, Refusal> {
        let wrong = |text: String| Err(refusal(Code::Invalid, text));
        if backup.group != self.group {
            return wrong(format!(
                "the backup is one of the group `{}`, and this node belongs to the group `{}`: \
                 give a backup of that group, or correct `group` in the settings of all nodes",
                backup.group, self.group
            ));
        }
        if above != 0 && above < backup.view {
            return wrong(format!(
                "the backup has view {}, so the group has reached more than view {above}: give the \
                 highest view that `doorway status` has shown, or leave out --above",
                backup.view
            ));
        }
        if let Err(why) = AgreedRules::read(&backup.rules) {
            return wrong(format!("the rules of the backup cannot be used: {why}"));
        }
        for seat in &backup.seats {
            let Ok(hello) = self.store.ask(&seat.address).await else { continue };
            // After a recovery or an earlier restore, the group has another number.
            if let Some(cluster) = hello.cluster {
                return wrong(format!(
                    "`{}` answers at {} and belongs to the group {cluster:032x}, so that group is \
                     not lost: start its other machines, or let one go on with `doorway members \
                     recover --alone`; to begin anew all the same, start `{}` with an empty data \
                     directory",
                    hello.name, seat.address, hello.name
                ));
            }
        }
        first_view(backup.view.max(above))
    }
}
