//! What a checker may drop from a group of this algorithm: the requests that the token has served.

use super::{Message, RicartAgrawalaToken};
use crate::algorithms::prelude::*;

/// Each node's requests have their own numbers, which are never compared with those of other nodes.
///
/// A request that the token has served does nothing wherever it arrives, now or later. So it may be
/// dropped, and nodes that have not received it may be treated as if they had.
pub(super) fn settle(group: &Group, snapshot: &mut Snapshot<RicartAgrawalaToken>) {
    write_own_numbers(snapshot);
    let served = served(group, snapshot);
    snapshot.mail.retain(|mail| match mail.message {
        Message::Request(number) => number > served[mail.from.index()],
        Message::Token(_) => true,
    });
    for node in &mut snapshot.nodes {
        for (asked, served) in node.requests.iter_mut().zip(&served) {
            *asked = (*asked).max(*served);
        }
    }
    for asker in group.nodes() {
        let of_node = |node: &mut RicartAgrawalaToken, each: NumberVisitor<'_>| {
            each(&mut node.requests[asker.index()]);
            node.token.iter_mut().for_each(|token| each(&mut token[asker.index()]));
        };
        snapshot.rebase(of_node, |mail, each| match &mut mail.message {
            Message::Request(number) if mail.from == asker => each(number),
            Message::Request(_) => {}
            Message::Token(served) => each(&mut served[asker.index()]),
        });
    }
}

/// Write the number of the node that has the token, or gets it next, into the token. That node does
/// so itself before the token is read.
fn write_own_numbers(snapshot: &mut Snapshot<RicartAgrawalaToken>) {
    for node in &mut snapshot.nodes {
        let (me, number) = (node.me, node.requests[node.me.index()]);
        let here = node.token.iter_mut();
        let coming = snapshot.mail.iter_mut().filter(|mail| mail.to == me);
        let coming = coming.filter_map(|mail| match &mut mail.message {
            Message::Token(served) => Some(served),
            Message::Request(_) => None,
        });
        here.chain(coming).for_each(|token| token[me.index()] = number);
    }
}

/// The number of each node's last request that is certainly served; 0 if the token is lost.
fn served(group: &Group, snapshot: &Snapshot<RicartAgrawalaToken>) -> Vec<u64> {
    let here = snapshot.nodes.iter().filter_map(|node| node.token.as_ref());
    let under_way = snapshot.mail.iter().filter_map(|mail| match &mail.message {
        Message::Token(served) => Some(served),
        Message::Request(_) => None,
    });
    let tokens: Vec<&Vec<u64>> = here.chain(under_way).collect();
    let least = |node: NodeId| tokens.iter().map(|token| token[node.index()]).min().unwrap_or(0);
    group.nodes().map(least).collect()
}
