//! A whole group at one moment, as a checker sees it, and how to make its sequence numbers small.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::{Algorithm, NodeId, Timestamp};

/// A message under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail<M> {
    /// The checker's own number for the message. It has no meaning to an algorithm.
    pub id: u64,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The message.
    pub message: M,
}

impl<M> Mail<M> {
    /// Replace the message, and keep everything else.
    pub fn map<N>(self, change: impl FnOnce(M) -> N) -> Mail<N> {
        let Self { id, from, to, message } = self;
        Mail { id, from, to, message: change(message) }
    }
}

/// All of a group at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<A: Algorithm> {
    /// The live nodes, in order.
    pub nodes: Vec<A>,
    /// The messages under way. Those of one channel are in the order in which they were sent.
    pub mail: Vec<Mail<A::Message>>,
    /// The number of nodes that may still crash.
    pub crashes: u32,
    /// Whether waiting clients may give up.
    pub withdrawals: bool,
}

/// Up to this many numbers are renumbered without memory from the allocator. A small group has no
/// more of them.
const FEW: usize = 8;

/// A function that is called with each sequence number of a family, and may change it.
pub type NumberVisitor<'a> = &'a mut dyn FnMut(&mut u64);

impl<A: Algorithm> Snapshot<A> {
    /// Subtract the least number of a family from all of its numbers. The group then behaves as
    /// before, if its nodes only compare the numbers of the family with each other, take the
    /// maximum of several, and add one.
    ///
    /// The family is the set of numbers that `of_node` and `of_mail` pass to their second argument.
    pub fn rebase(
        &mut self,
        of_node: impl Fn(&mut A, NumberVisitor<'_>),
        of_mail: impl Fn(&mut Mail<A::Message>, NumberVisitor<'_>),
    ) {
        self.rebase_with_gap(u64::MAX, of_node, of_mail);
    }

    /// Do what [`Self::rebase`] does, and narrow every distance between two successive numbers of
    /// the family to at most `gap`. The group then behaves as before, if in addition no number
    /// below a gap that was narrowed can ever be counted up to the number above it.
    pub fn rebase_with_gap(
        &mut self,
        gap: u64,
        of_node: impl Fn(&mut A, NumberVisitor<'_>),
        of_mail: impl Fn(&mut Mail<A::Message>, NumberVisitor<'_>),
    ) {
        self.renumber(0, |_| gap, of_node, of_mail);
    }

    /// Do what [`Self::rebase`] does, but let the numbers begin at `first`, and replace all numbers
    /// below the least counter by their ranks. `counter` returns the number that a node counts up
    /// before it sends it; all others stay as they are, and are only compared.
    ///
    /// The group then behaves as before: whatever is counted later is above the least counter, and
    /// all numbers keep their order.
    pub fn rebase_with_ranks(
        &mut self,
        first: u64,
        counter: impl Fn(&A) -> u64,
        of_node: impl Fn(&mut A, NumberVisitor<'_>),
        of_mail: impl Fn(&mut Mail<A::Message>, NumberVisitor<'_>),
    ) {
        let least = self.nodes.iter().map(counter).min().unwrap_or(0);
        let gap = |number| if number <= least { 1 } else { u64::MAX };
        self.renumber(first, gap, of_node, of_mail);
    }

    /// Number the family anew, beginning at `first`. The distance of each number from the next
    /// lower one becomes at most `gap` of the number.
    fn renumber(
        &mut self,
        first: u64,
        gap: impl Fn(u64) -> u64,
        of_node: impl Fn(&mut A, NumberVisitor<'_>),
        of_mail: impl Fn(&mut Mail<A::Message>, NumberVisitor<'_>),
    ) {
        let mut show = |each: NumberVisitor<'_>| {
            self.nodes.iter_mut().for_each(|node| of_node(node, each));
            self.mail.iter_mut().for_each(|mail| of_mail(mail, each));
        };
        // The numbers in order, and those below 64 as bits, because most numbers are small and
        // occur several times.
        let (mut family, mut small) = (SmallVec::<[u64; FEW]>::new(), 0_u64);
        show(&mut |number| {
            let bit = if *number < 64 { 1 << *number } else { 0 };
            if small & bit == 0
                && let Err(at) = family.binary_search(number)
            {
                family.insert(at, *number);
                small |= bit;
            }
        });
        let mut last = family.first().map(|least| (*least, first));
        let renumber = |number: &u64| {
            last = last.map(|(before, new)| (*number, new + gap(*number).min(*number - before)));
            last.map_or(first, |(_, new)| new)
        };
        let renumbered: SmallVec<[u64; FEW]> = family.iter().map(renumber).collect();
        // Most worlds of a search are settled already.
        if renumbered != family {
            show(&mut |number| {
                let (Ok(at) | Err(at)) = family.binary_search(number);
                *number = renumbered[at];
            });
        }
    }
}

/// Call `each` with the sequence numbers of all requests in a queue.
pub(crate) fn each_of_queue(queue: &mut BTreeSet<Timestamp>, each: NumberVisitor<'_>) {
    let mut renumber = |request: &Timestamp| {
        let mut request = *request;
        each(&mut request.clock);
        request
    };
    // Most numbers stay as they are, and it takes longer to build a set than to read it.
    let changed = queue.iter().enumerate().find_map(|(at, request)| {
        let new = renumber(request);
        (new != *request).then_some((at, new))
    });
    if let Some((at, new)) = changed {
        let after = queue.iter().skip(at + 1).map(renumber);
        *queue = queue.iter().take(at).copied().chain([new]).chain(after).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::ricart_agrawala::{Message, RicartAgrawala};

    fn requests(numbers: &[u64]) -> Snapshot<RicartAgrawala> {
        let mail = |number: &u64| Mail {
            id: 0,
            from: NodeId(0),
            to: NodeId(1),
            message: Message::Request(*number),
        };
        let mail = numbers.iter().map(mail).collect();
        Snapshot { nodes: Vec::new(), mail, crashes: 0, withdrawals: false }
    }

    fn number(mail: &mut Mail<Message>, each: NumberVisitor<'_>) {
        if let Message::Request(number) = &mut mail.message {
            each(number);
        }
    }

    #[test]
    fn the_least_number_becomes_zero_and_distances_are_kept() {
        let mut snapshot = requests(&[9, 7, 7, 12]);
        snapshot.rebase(|_, _| {}, number);
        assert_eq!(snapshot.mail, requests(&[2, 0, 0, 5]).mail);
    }

    #[test]
    fn only_numbers_below_the_least_counter_become_ranks() {
        let mut snapshot = requests(&[40, 7, 9, 13, 30]);
        let group = crate::Group::new(2).unwrap();
        let start = crate::Start { floor: 20, ..crate::Start::default() };
        snapshot.nodes.push(RicartAgrawala::new(NodeId(1), &group, &start));
        snapshot.rebase_with_ranks(1, |node| node.floor().unwrap(), |_, _| {}, number);
        assert_eq!(snapshot.mail, requests(&[30, 1, 2, 3, 20]).mail);
    }

    #[test]
    fn only_wide_gaps_are_narrowed() {
        let mut snapshot = requests(&[40, 7, 9, 13]);
        snapshot.rebase_with_gap(3, |_, _| {}, number);
        assert_eq!(snapshot.mail, requests(&[8, 0, 2, 5]).mail);
    }
}
