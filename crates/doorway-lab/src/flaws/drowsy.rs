//! Carvalho & Roucairol's procedures as a program with two threads may run them.

use doorway_core::algorithms::carvalho_roucairol::{CarvalhoRoucairol, Message};
use doorway_core::{Algorithm, Effects, Group, Info, Mode, NodeId, NodeSet, Start};

/// Once all permissions are there, the node only wakes its client. The client enters later, after
/// the next event at its node, and does not check again whether all permissions are still there.
///
/// This flaw cannot be added to the correct algorithm from outside, because that algorithm has no
/// state between the two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Drowsy {
    me: NodeId,
    highest: u64,
    request: Option<u64>,
    inside: bool,
    woken: bool,
    missing: NodeSet,
    deferred: NodeSet,
}

impl Drowsy {
    fn wake_if_complete(&mut self) {
        self.woken |= self.missing.is_empty();
    }

    /// Let the client that was woken enter.
    fn come_round(&mut self, out: &mut Effects<Message>) {
        if std::mem::take(&mut self.woken) {
            self.inside = true;
            out.enter();
        }
    }

    fn hear(&mut self, from: NodeId, message: &Message, out: &mut Effects<Message>) {
        match *message {
            Message::Request(clock) => {
                self.highest = self.highest.max(clock);
                let ours = self.request.filter(|ours| (*ours, self.me) < (clock, from));
                if self.inside || ours.is_some() {
                    self.deferred.insert(from);
                    return;
                }
                out.send(from, Message::Reply);
                if let Some(number) = self.request.filter(|_| !self.missing.contains(from)) {
                    out.send(from, Message::Request(number));
                }
                self.missing.insert(from);
            }
            Message::Reply => {
                self.missing.remove(from);
                self.wake_if_complete();
            }
        }
    }
}

impl Algorithm for Drowsy {
    type Message = Message;

    const INFO: Info = CarvalhoRoucairol::INFO;

    fn new(me: NodeId, group: &Group, start: &Start) -> Self {
        let (highest, deferred) = (start.floor, NodeSet::new());
        let request = start.holder(me).map(|_| start.floor);
        let inside = request.is_some();
        let missing = group.others(me).filter(|_| !inside).collect();
        Self { me, highest, request, inside, woken: false, missing, deferred }
    }

    fn acquire(&mut self, _group: &Group, _mode: Mode, out: &mut Effects<Message>) {
        self.highest += 1;
        self.request = Some(self.highest);
        out.send_all(self.missing.iter(), &Message::Request(self.highest));
        self.wake_if_complete();
    }

    fn receive(
        &mut self,
        _group: &Group,
        from: NodeId,
        message: Message,
        out: &mut Effects<Message>,
    ) {
        let woken = self.woken;
        self.hear(from, &message, out);
        if woken {
            self.come_round(out);
        }
    }

    fn release(&mut self, _group: &Group, out: &mut Effects<Message>) {
        (self.request, self.inside) = (None, false);
        let deferred = std::mem::take(&mut self.deferred);
        out.send_all(deferred.iter(), &Message::Reply);
        for node in deferred.iter() {
            self.missing.insert(node);
        }
    }

    fn wanted(&self) -> bool {
        !self.deferred.is_empty()
    }

    fn floor(&self) -> Option<u64> {
        None
    }
}
