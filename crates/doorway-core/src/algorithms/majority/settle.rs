//! What a checker may drop from a group of `majority`.

use super::{Message, Voting};
use crate::algorithms::prelude::*;

/// All numbers are one family. An INQUIRE about a request that is inside or done does nothing, now
/// or later.
///
/// Between two numbers more than N apart there is a completed request: numbers grow by one with
/// each request, and of N+1 requests two are by the same node. A node that enters has the vote of a
/// node that voted for that completed request, and has learnt its number with the vote. So a node
/// below a gap asks at most once before it is above the gap, and all nodes together do not count up
/// to N more. If requests may be withdrawn, numbers grow without a completed request, and no gap is
/// narrowed.
pub(super) fn settle<const WEIGHTED: bool>(
    group: &Group,
    snapshot: &mut Snapshot<Voting<WEIGHTED>>,
) {
    let nodes = &snapshot.nodes;
    snapshot.mail.retain(|mail| match mail.message {
        Message::Inquire(clock) => {
            nodes.iter().any(|node| node.me == mail.to && node.waits_with(clock))
        }
        _ => true,
    });
    let of_node = |node: &mut Voting<WEIGHTED>, each: NumberVisitor<'_>| {
        each(&mut node.clock);
        node.request.iter_mut().for_each(|request| each(&mut request.clock));
        node.voter.numbers(each);
    };
    let gap = if snapshot.withdrawals { u64::MAX } else { u64::from(group.size()) + 1 };
    snapshot.rebase_with_gap(gap, of_node, |mail, each| match &mut mail.message {
        Message::Yes(clock, seen) => {
            each(clock);
            each(seen);
        }
        Message::Request(clock)
        | Message::Inquire(clock)
        | Message::Relinquish(clock)
        | Message::Release(clock) => each(clock),
    });
}
