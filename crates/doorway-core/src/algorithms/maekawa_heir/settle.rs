//! What a checker may drop from a group whose arbiters can be inherited.

use super::{MaekawaHeir, Message};
use crate::algorithms::maekawa;
use crate::algorithms::maekawa::requester::Requester;
use crate::algorithms::prelude::*;

/// As in `maekawa` while no node crashes. A gap is safe because members have learnt the numbers
/// above it. An heir does not inherit what a member has learnt, so where nodes crash, a node below
/// the gap might enter again and again and count up to it.
pub(super) fn settle(group: &Group, snapshot: &mut Snapshot<MaekawaHeir>) {
    let nodes = &snapshot.nodes;
    snapshot.mail.retain(|mail| match mail.message {
        Message::About(_, maekawa::Message::Inquire(number)) => {
            nodes.iter().any(|node| node.me == mail.to && node.requester.heeds(number))
        }
        _ => true,
    });
    let of_node = |node: &mut MaekawaHeir, each: NumberVisitor<'_>| {
        each(&mut node.clock);
        node.requester.numbers(each);
        node.arbiters.numbers(each);
    };
    let crashes = snapshot.crashes > 0 || snapshot.nodes.len() < group.size() as usize;
    let gap = if crashes { u64::MAX } else { u64::from(group.size()) + 1 };
    snapshot.rebase_with_gap(gap, of_node, |mail, each| mail.message.numbers(each));
}
