//! The bill: at whose charge each message is sent.
//!
//! A message is paid by the node that [`AnyMember::serves`](crate::erased::AnyMember::serves) names; else by the node whose client's
//! coming or leaving sent it; else by whoever paid for the message that made the node send it. What
//! a group sends as it begins, and all that follows from it, is free.

use doorway_core::{Group, NodeId, Per, Phase, Start};

use super::{Event, Outgoing, Watch, all};
use crate::World;

/// What a node has sent at whose charge, and how often its own client came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Charges {
    me: NodeId,
    /// How many messages we have sent at each node's charge.
    sent: Vec<u32>,
    /// How often our client has asked.
    requests: u32,
    /// How often it has entered since.
    entries: u32,
}

impl Watch for Charges {
    /// Who pays for the message.
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
            // Whoever was inside from the beginning has asked for nothing.
            Event::Acquire(_) | Event::Release => (self.requests > 0).then_some(self.me),
            Event::Receive { message, .. } => message.note,
        };
        let payer = outgoing.serves.or(cause);
        if let Some(payer) = payer {
            self.sent[payer.index()] += 1;
        }
        payer
    }
}

/// A sum of messages, and for what.
#[derive(Clone, Copy, Debug, Default)]
struct Bill {
    messages: u32,
    requests: u32,
    entries: u32,
}

/// Who pays more than the most that is claimed for each request, or, once all is quiet, less than
/// the least that is claimed for each entry? Where the claim is for a run, it binds only the sum.
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
        Some(format!("pays {messages} messages for {requests} requests, of {most} at most"))
    } else if quiet && f64::from(messages) < least * f64::from(entries) - 1e-9 {
        Some(format!("pays {messages} messages for {entries} entries, of {least} at least"))
    } else {
        None
    }
}
