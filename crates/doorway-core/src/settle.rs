//! A group at one moment, as a checker sees it, and how to take the growth of numbers out of it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::{Algorithm, NodeId, Timestamp};

/// A message under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail<M> {
    /// By which number the checker knows the message: of no meaning to an algorithm.
    pub id: u64,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The message itself.
    pub message: M,
}

/// All of a group at one moment.
#[derive(Clone, Debug)]
pub struct Moment<A: Algorithm> {
    /// The nodes that live, in order.
    pub nodes: Vec<A>,
    /// The messages under way; those of one channel in the order in which they were sent.
    pub mail: Vec<Mail<A::Message>>,
    /// How many nodes may still crash.
    pub crashes: u32,
}

/// What is to be done with each number that is shown to it.
pub type Each<'a> = &'a mut dyn FnMut(&mut u64);

impl<A: Algorithm> Moment<A> {
    /// Subtract the least number of a family from all of them. That changes nothing if numbers of
    /// the family are only compared with each other, raised to each other, and counted up.
    ///
    /// The family is whatever numbers of a node and of a message are shown.
    pub fn rebase(
        &mut self,
        of_node: impl Fn(&mut A, Each<'_>),
        of_mail: impl Fn(&mut Mail<A::Message>, Each<'_>),
    ) {
        self.rebase_with_gap(u64::MAX, of_node, of_mail);
    }

    /// Do the same, and narrow what is wider than `gap` between two successive numbers to it. That
    /// changes nothing if, besides, none of those below such a gap can ever be counted up to it.
    pub fn rebase_with_gap(
        &mut self,
        gap: u64,
        of_node: impl Fn(&mut A, Each<'_>),
        of_mail: impl Fn(&mut Mail<A::Message>, Each<'_>),
    ) {
        let mut show = |each: Each<'_>| {
            self.nodes.iter_mut().for_each(|node| of_node(node, each));
            self.mail.iter_mut().for_each(|mail| of_mail(mail, each));
        };
        let mut family = BTreeSet::new();
        show(&mut |number| {
            family.insert(*number);
        });
        let mut renumbered = BTreeMap::new();
        let mut last = family.first().map(|least| (*least, 0));
        for number in family {
            last = last.map(|(before, new)| (number, new + gap.min(number - before)));
            renumbered.extend(last);
        }
        show(&mut |number| *number = renumbered[number]);
    }
}

/// Show the numbers of all requests in a queue.
pub(crate) fn each_of_queue(queue: &mut BTreeSet<Timestamp>, each: Each<'_>) {
    let renumber = |mut request: Timestamp| {
        each(&mut request.clock);
        request
    };
    *queue = core::mem::take(queue).into_iter().map(renumber).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::ricart_agrawala::{Message, RicartAgrawala};

    fn requests(numbers: &[u64]) -> Moment<RicartAgrawala> {
        let mail = |number: &u64| Mail {
            id: 0,
            from: NodeId(0),
            to: NodeId(1),
            message: Message::Request(*number),
        };
        let mail = numbers.iter().map(mail).collect();
        Moment { nodes: Vec::new(), mail, crashes: 0 }
    }

    fn number(mail: &mut Mail<Message>, each: Each<'_>) {
        if let Message::Request(number) = &mut mail.message {
            each(number);
        }
    }

    #[test]
    fn the_least_becomes_zero_and_all_keep_their_distances() {
        let mut moment = requests(&[9, 7, 7, 12]);
        moment.rebase(|_, _| {}, number);
        assert_eq!(moment.mail, requests(&[2, 0, 0, 5]).mail);
    }

    #[test]
    fn only_wide_gaps_are_narrowed() {
        let mut moment = requests(&[40, 7, 9, 13]);
        moment.rebase_with_gap(3, |_, _| {}, number);
        assert_eq!(moment.mail, requests(&[8, 0, 2, 5]).mail);
    }
}
