//! Locks that clients keep until somebody else wants them.

use std::time::Duration;

use doorway_client::{Code, Options, State, blocking};

use crate::common::daemon::{Daemon, tcp};
use crate::common::group::{self, Group};
use crate::common::{PATIENCE, code, until};

/// A client that keeps its locks.
fn keeper(daemon: &Daemon) -> blocking::Client {
    blocking::Client::connect(daemon.endpoint(), &Options::default().keep())
        .expect("the node listens")
}

#[test]
fn a_kept_lock_is_given_to_others_in_every_way() {
    let daemon = Daemon::alone("");
    let (keeper, other) = (keeper(&daemon), daemon.client());
    let enter = || keeper.acquire("a").enter().unwrap();
    let first = enter().fence();
    let again = enter();
    assert_eq!(Some(again.fence()), first.next(), "the node was not asked");
    assert_eq!(again.remaining().map(|left| left <= Duration::from_secs(10)), Some(true));
    // While the keeper is inside, its lock is held.
    assert_eq!(code(&other.acquire("a").try_now().enter().unwrap_err()), Code::NotFree);
    let report = other.inspect("a").unwrap();
    assert_eq!((report.holders.len(), report.holders[0].fence), (1, first));
    again.release().unwrap();

    let mut last = enter().fence();
    let mut higher = |grant: blocking::Grant| {
        assert!(grant.fence() > last);
        last = grant.fence();
        grant.release().unwrap();
    };
    higher(other.acquire("a").try_now().enter().unwrap());
    higher(enter());
    higher(other.acquire("a").within(PATIENCE).enter().unwrap());
    higher(enter());
    other.await_free("a").unwrap();
    higher(enter());
    // It can be broken by the fence that the program has.
    let broken = enter();
    other.break_lock("a", broken.fence()).unwrap();
    until("the client is told", || broken.is_lost());
    assert!(broken.release().is_err());
    higher(other.acquire("a").within(PATIENCE).enter().unwrap());
}

#[test]
fn a_kept_lock_is_entered_with_all_numbers_of_many_ranges() {
    let daemon = Daemon::alone("");
    let keeper = keeper(&daemon);
    let before = keeper.status().unwrap().grants;
    let mut last = None;
    for _ in 0..2500 {
        let grant = keeper.acquire("a").enter().unwrap();
        assert!(Some(grant.fence()) > last);
        last = Some(grant.fence());
        grant.release().unwrap();
    }
    assert_eq!(keeper.status().unwrap().grants - before, 3, "one for every 1001 entries");
}

#[test]
fn another_node_gets_a_kept_lock() {
    let rules = "[[lock]]\nnames = \"token\"\nalgorithm = \"suzuki-kasami\"\n\
                 [[lock]]\nnames = \"quorum\"\nalgorithm = \"maekawa\"\n";
    let group = Group::start(rules);
    let (keeper, other) = (keeper(&group.nodes[0]), group.nodes[1].client());
    for (lock, keeps) in [("plain", true), ("token", true), ("quorum", false)] {
        for _ in 0..2 {
            let first = keeper.acquire(lock).enter().unwrap().fence();
            let again = keeper.acquire(lock).enter().unwrap();
            // With quorums a node does not know whether others wait, so nothing is kept.
            assert_eq!(Some(again.fence()) == first.next() && keeps, keeps, "{lock}");
            let fence = again.fence();
            again.release().unwrap();
            let grant = other.acquire(lock).within(PATIENCE).enter().unwrap();
            assert!(grant.fence() > fence, "{lock}");
            grant.release().unwrap();
        }
    }
}

#[test]
fn a_kept_lock_survives_neither_a_cut_connection_nor_a_restart() {
    let mut daemon = group::remote("");
    let (address, _) = daemon.tcp.clone().unwrap();
    let options = daemon.over_tcp().keep().ttl(Duration::from_secs(10));
    let keeper = blocking::Client::connect(tcp(&address), &options).unwrap();
    let first = keeper.acquire("a").enter().unwrap();
    let inside = keeper.acquire("b").enter().unwrap();
    let fence = first.fence();
    first.release().unwrap();
    daemon.crash();
    daemon.ready();
    // The lock that it is inside of goes on, and the other one was given up.
    let other = daemon.client();
    let grant = other.acquire("a").within(PATIENCE).enter().unwrap();
    assert!(grant.fence() > fence);
    assert_eq!(code(&other.acquire("b").try_now().enter().unwrap_err()), Code::NotFree);
    assert_ne!(inside.state(), State::Lost);
    inside.release().unwrap();
    grant.release().unwrap();
    assert!(keeper.acquire("a").enter().unwrap().fence() > fence);
}
