//! What a group of `raymond-k` may forget.

use super::{Entries, Message};
use crate::algorithms::prelude::*;

/// All sequence numbers are one family. A reply to an earlier request does nothing, now or later:
/// no request will have its number again.
pub(super) fn settle<const SCANNED: bool>(moment: &mut Moment<Entries<SCANNED>>) {
    let nodes = &moment.nodes;
    moment.mail.retain(|mail| match mail.message {
        Message::Reply { seq, .. } => {
            nodes.iter().any(|node| node.me == mail.to && node.request == Some(seq))
        }
        Message::Request(_) => true,
    });
    let of_node = |node: &mut Entries<SCANNED>, each: Each<'_>| {
        each(&mut node.highest);
        node.request.iter_mut().for_each(&mut *each);
        node.deferred.values_mut().for_each(|(seq, _)| each(seq));
    };
    moment.rebase(of_node, |mail, each| match &mut mail.message {
        Message::Request(seq) | Message::Reply { seq, .. } => each(seq),
    });
}
