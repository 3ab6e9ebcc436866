//! The coordinator of a lock by rendezvous hashing: every member computes the same one, locks are
//! spread evenly over the members, and only the locks of a member that leaves move to others
//! (Thaler & Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996).

use doorway_core::NodeId;
use doorway_protocol::fnv::fnv1a;

/// The member that decides who enters a lock. All members must compute the same one, so the hash is
/// part of the protocol.
pub(crate) fn coordinator(lock: &str, members: &[String]) -> NodeId {
    // Of equal weights, the smaller name wins, whatever the order of the members is.
    let best = members.iter().enumerate().max_by(|(_, one), (_, other)| {
        weight(lock, one).cmp(&weight(lock, other)).then_with(|| other.cmp(one))
    });
    NodeId::at(best.map_or(0, |(index, _)| index))
}

/// FNV-1a over the two names with a byte between them that occurs in none, and the finalizer of
/// `SplitMix64`, without which the highest bits would hardly depend on the last characters.
fn weight(lock: &str, member: &str) -> u64 {
    let bytes = member.bytes().chain([0xff]).chain(lock.bytes());
    let mut hash = fnv1a(bytes);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn chosen(lock: &str, names: &[&str]) -> String {
        let names = named(names);
        names[coordinator(lock, &names).index()].clone()
    }

    #[test]
    fn the_coordinator_depends_on_the_names_only() {
        assert_eq!(weight("orders", "a"), 0xef8a_33db_8cf0_fb7d, "part of the protocol");
        for lock in ["orders", "", "x", "deploy/web"] {
            assert_eq!(chosen(lock, &["a", "b", "c"]), chosen(lock, &["c", "a", "b"]));
        }
    }

    #[test]
    fn locks_are_spread_and_only_those_of_a_member_that_leaves_move() {
        let mut counts = [0; 4];
        for number in 0..4000 {
            let lock = format!("lock{number}");
            let before = coordinator(&lock, &named(&["a", "b", "c", "d"])).index();
            counts[before] += 1;
            let after = coordinator(&lock, &named(&["a", "b", "c"])).index();
            assert!(before == 3 || before == after, "{lock} has moved");
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
