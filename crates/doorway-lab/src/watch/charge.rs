//! The cost of requests: which node each message is charged to.
//!
//! A message is charged to the node that [`AnyMember::serves`](crate::erased::AnyMember::serves)
//! names. If it names none, the cause of the message decides. A message that a node sends because
//! its client asks or leaves is charged to that node. A message that is sent because another
//! message arrived is charged to the payer of that other message. Messages that a group sends as it
//! begins, and all messages that they cause, are free.

use doorway_core::{Group, NodeId, Per, Phase, Start};

use super::{Event, Outgoing, Watch, all};
use crate::World;

/// How many messages a node has sent at the charge of each node, and how many requests it has made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Charges {
    me: NodeId,
    /// How many messages we have sent that are charged to each node.
    sent: Vec<u32>,
    /// How many requests our client has made.
    requests: u32,
    /// How many of them were granted.
    entries: u32,
}

impl Watch for Charges {
    /// The node that pays for the message, if any.
    type Note = Option<NodeId>;

    fn new(me: NodeId, group: &Group, _start: &Start) -> Self {
        Self { me, sent: vec![0; group.size() as usize], requests: 0, entries: 0 }
    }

    fn happened(&mut self, event: Event<'_, Self::Note>) {
        self.requests += u32::from(matches!(event, Event::Acquire(_)));
    }

    fn entered(&mut self, _group: &Group) {
        self.entries += 1;
    }

    fn note(&mut self, event: Event<'_, Self::Note>, outgoing: Outgoing<'_>) -> Self::Note {
        let cause = match event {
            Event::Start | Event::Failed => None,
            // A client that was inside from the beginning has made no request.
            Event::Acquire(_) | Event::Release | Event::Withdraw => {
                (self.requests > 0).then_some(self.me)
            }
            Event::Receive { message, .. } => message.note,
        };
        let payer = outgoing.serves.or(cause);
        if let Some(payer) = payer {
            self.sent[payer.index()] += 1;
        }
        payer
    }
}

/// How many messages were paid, and for how many requests and entries.
#[derive(Clone, Copy, Debug, Default)]
struct Bill {
    messages: u32,
    requests: u32,
    entries: u32,
}

/// Check the bills of all nodes against the algorithm's claim.
///
/// No node may pay more than the claimed most per request. Once the group is quiet, no node may
/// have paid less than the claimed least per entry. If the claim is about a whole run, only the sum
/// of all bills is checked.
pub fn check(world: &World) -> Option<String> {
    let mut bills: Vec<Bill> = Vec::new();
    for (payer, Charges { requests, entries, .. }) in all::<Charges>(world) {
        let messages = all::<Charges>(world).map(|(_, charges)| charges.sent[payer.index()]).sum();
        bills.push(Bill { messages, requests: *requests, entries: *entries });
    }
    match world.info().messages.per {
        Per::Entry => bills.iter().zip(0..).find_map(|(bill, node)| {
            Some(format!("node {} {}", NodeId(node), complaint(world, *bill)?))
        }),
        Per::Run => {
            let sum = bills.iter().fold(Bill::default(), |sum, bill| Bill {
                messages: sum.messages + bill.messages,
                requests: sum.requests + bill.requests,
                entries: sum.entries + bill.entries,
            });
            Some(format!("the group {}", complaint(world, sum)?))
        }
    }
}

/// What is wrong with a bill, if anything.
fn complaint(world: &World, bill: Bill) -> Option<String> {
    let Bill { messages, requests, entries } = bill;
    let claim = world.info().messages;
    let (least, most) = ((claim.least.of)(world.group()), (claim.most.of)(world.group()));
    let quiet = world.under_way().next().is_none()
        && world.live_in(Phase::Outside).len() == world.group().size() as usize;
    if f64::from(messages) > most * f64::from(requests) + 1e-9 {
        Some(format!(
            "pays {messages} messages for {requests} requests, above the claimed {most} per request"
        ))
    } else if quiet && f64::from(messages) < least * f64::from(entries) - 1e-9 {
        Some(format!(
            "pays {messages} messages for {entries} entries, below the claimed {least} per entry"
        ))
    } else {
        None
    }
}
