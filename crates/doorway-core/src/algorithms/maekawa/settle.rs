//! What a checker may drop from a group of Maekawa's algorithm.

use super::requester::Requester;
use super::{Maekawa, Message, Rules};
use crate::algorithms::prelude::*;

/// All numbers are one family. An INQUIRE about a request that is inside or done does nothing, now
/// or later, except in a refuted variant, which takes it for one about the next request.
///
/// Between two numbers more than N apart there is a completed request: numbers grow by one with
/// each request, and of N+1 requests two are by the same node. A node that enters has been locked
/// by a member that was locked for that completed request, and has learnt its number with LOCKED.
/// So a node below a gap asks at most once before it is above the gap, and all nodes together do
/// not count up to N more. This does not hold where two nodes may be inside together, nor where
/// requests may be withdrawn, because numbers then grow without a completed request.
pub(super) fn settle<R: Rules>(group: &Group, snapshot: &mut Snapshot<Maekawa<R>>) {
    let nodes = &snapshot.nodes;
    snapshot.mail.retain(|mail| match mail.message {
        Message::Inquire(number) if R::GUARDED => {
            nodes.iter().any(|node| node.me == mail.to && node.requester.heeds(number))
        }
        _ => true,
    });
    let of_node = |node: &mut Maekawa<R>, each: NumberVisitor<'_>| {
        each(&mut node.clock);
        node.requester.numbers(each);
        node.arbiter.numbers(each);
    };
    let narrow = R::GUARDED && !snapshot.withdrawals;
    let gap = if narrow { u64::from(group.size()) + 1 } else { u64::MAX };
    snapshot.rebase_with_gap(gap, of_node, |mail, each| mail.message.numbers(each));
}
