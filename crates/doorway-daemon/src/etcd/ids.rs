//! The numbers that clients are told: leases and revisions. Both name the node at which they are at
//! home.
//!
//! A client may send its calls to all members, one to this and the next to that. So a member must
//! see at once to which other one a call belongs. The number of a lease, and the revision of a
//! request that waits, consist of
//!
//! - bit 62, which is set, so that a lease has 16 digits in hexadecimal and 19 in decimal, and a
//!   key that ends with a lease can be recognised;
//! - 15 bits that follow from the name of the node;
//! - 47 bits that are unique at this node.
//!
//! Fences are never that high: they would need four million views.

use std::sync::atomic::{AtomicU32, Ordering};

use doorway_protocol::fnv::fnv1a;
use doorway_sessions::standing::LEASE_BITS;

const MARK: u64 = 1 << 62;
const HOME_BITS: u32 = 62 - LEASE_BITS;

/// The bits of a revision that count the requests of a process. Before it, there are those of the
/// number of the process, and after it one that tells the key of the request from its predecessor.
const COUNTER_BITS: u32 = 32;
const PROCESS_BITS: u32 = LEASE_BITS - COUNTER_BITS - 1;

/// The bits of a number that follow from the name of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home(u64);

impl Home {
    pub(super) fn of(node: &str) -> Self {
        let hash = hash(node);
        // The low bits of this hash are the better ones, and all of them count.
        let folded = hash ^ hash >> 15 ^ hash >> 30 ^ hash >> 45;
        Self(folded & ((1 << HOME_BITS) - 1))
    }

    /// The number of a client for what is called `number` at this node.
    pub(super) fn id(self, number: u64) -> i64 {
        let number = number & ((1 << LEASE_BITS) - 1);
        (MARK | self.0 << LEASE_BITS | number).cast_signed()
    }
}

/// A hash of a text, which is the same at every node.
pub(super) fn hash(text: &str) -> u64 {
    fnv1a(text.bytes())
}

/// The node and the number at this node behind the number of a client; none if no node has made it.
pub(super) fn parts(id: i64) -> Option<(Home, u64)> {
    let id = u64::try_from(id).ok().filter(|id| id & MARK != 0)?;
    let home = Home((id & (MARK - 1)) >> LEASE_BITS);
    Some((home, id & ((1 << LEASE_BITS) - 1)))
}

/// Makes revisions for requests that wait.
///
/// No clock is needed: two processes of a node have different numbers, and two requests of a
/// process have different counts. A number of a process comes again after 16,384 starts, and a
/// count after four thousand million requests; by then nobody waits for the former request. Two
/// members of which the names give the same number begin to count at different places.
pub(super) struct Revisions {
    home: Home,
    count: AtomicU32,
    /// Stands for the number of a process that has none.
    random: u64,
}

impl Revisions {
    /// Begin to count at a random number.
    pub(super) fn new(home: Home, random: u64) -> Self {
        Self { home, count: AtomicU32::new(random as u32), random: random >> 32 }
    }

    /// A revision that no other request has, of this process with this number, or of another one.
    /// It is odd: the one before it belongs to the key that a waiting client is shown as its
    /// predecessor.
    pub(super) fn next(&self, process: Option<u64>) -> i64 {
        let process = process.unwrap_or(self.random) & ((1 << PROCESS_BITS) - 1);
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        self.home.id((process << COUNTER_BITS | u64::from(count)) << 1 | 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use doorway_protocol::Fence;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_names_its_node(node in "[a-z0-9-]{1,20}", number in 0_u64..1 << LEASE_BITS) {
            let home = Home::of(&node);
            let id = home.id(number);
            prop_assert!(id > 0);
            prop_assert_eq!(parts(id), Some((home, number)));
            prop_assert_eq!((format!("{id:x}").len(), id.to_string().len()), (16, 19));
        }
    }

    #[test]
    fn the_number_of_a_node_is_the_same_in_every_version() {
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c, "nodes of other versions find leases by it");
    }

    #[test]
    fn revisions_are_odd_and_differ() {
        // The count begins just before its end, so that it begins again.
        let revisions = Revisions::new(Home::of("a"), (u32::MAX - 20).into());
        let mut all = BTreeSet::new();
        for process in [Some(1), Some(2), Some((1 << PROCESS_BITS) - 1), None] {
            for _ in 0..100 {
                let revision = revisions.next(process);
                assert!(revision % 2 == 1 && parts(revision).unwrap().0 == Home::of("a"));
                assert!(all.insert(revision), "{revision} again");
            }
        }
    }

    /// The processes count from the same number, which they do by a rare chance only.
    #[test]
    fn a_later_process_makes_no_revision_again() {
        let made = |process| {
            let revisions = Revisions::new(Home::of("a"), 7);
            (0..1000).map(move |_| revisions.next(Some(process))).collect::<BTreeSet<_>>()
        };
        assert!(made(1).is_disjoint(&made(2)));
    }

    #[test]
    fn other_numbers_belong_to_no_node() {
        let fence = Fence::new(1_000_000, Fence::CLOCK_LIMIT).get().cast_signed();
        for id in [0, 1, -1, i64::MIN, fence] {
            assert_eq!(parts(id), None);
        }
        assert_ne!(Home::of("a"), Home::of("b"));
        assert_ne!(Home::of("n1"), Home::of("n2"));
    }
}
