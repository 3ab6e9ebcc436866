//! What a checker may drop from a group of this algorithm: the requests that the token has served.

use super::{Message, SuzukiKasami, Token};
use crate::algorithms::prelude::*;

/// Each node's requests have their own numbers, which are never compared with those of other nodes.
///
/// A request that the token has served does nothing wherever it arrives; on a ring or a tree it is
/// passed on, and does nothing there either. So it may be dropped, and nodes that have not received
/// it may be treated as if they had.
pub(super) fn settle(group: &Group, snapshot: &mut Snapshot<SuzukiKasami>) {
    write_own_numbers(snapshot);
    let served = served(group, snapshot);
    snapshot.mail.retain(|mail| match mail.message {
        Message::Request(node, number) => number > served[node.index()],
        Message::Privilege(_) => true,
    });
    for node in &mut snapshot.nodes {
        for (asked, served) in node.requests.iter_mut().zip(&served) {
            *asked = (*asked).max(*served);
        }
    }
    for asker in group.nodes() {
        let of_node = |node: &mut SuzukiKasami, each: NumberVisitor<'_>| {
            each(&mut node.requests[asker.index()]);
            node.token.iter_mut().for_each(|token| each(&mut token.served[asker.index()]));
        };
        snapshot.rebase(of_node, |mail, each| match &mut mail.message {
            Message::Request(node, number) if *node == asker => each(number),
            Message::Request(..) => {}
            Message::Privilege(token) => each(&mut token.served[asker.index()]),
        });
    }
}

/// Write the number of the node that gets the token next into the token. That node does so itself
/// on arrival, before the token is read.
fn write_own_numbers(snapshot: &mut Snapshot<SuzukiKasami>) {
    for node in &snapshot.nodes {
        let me = node.me;
        for mail in snapshot.mail.iter_mut().filter(|mail| mail.to == me) {
            if let Message::Privilege(token) = &mut mail.message {
                token.served[me.index()] = node.requests[me.index()];
            }
        }
    }
}

/// The number of each node's last request that is certainly served; 0 if the token is lost.
fn served(group: &Group, snapshot: &Snapshot<SuzukiKasami>) -> Vec<u64> {
    let here = snapshot.nodes.iter().filter_map(|node| node.token.as_ref());
    let under_way = snapshot.mail.iter().filter_map(|mail| match &mail.message {
        Message::Privilege(token) => Some(token),
        Message::Request(..) => None,
    });
    let tokens: Vec<&Token> = here.chain(under_way).collect();
    let least =
        |node: NodeId| tokens.iter().map(|token| token.served[node.index()]).min().unwrap_or(0);
    group.nodes().map(least).collect()
}
