//! Groups of three services with certificates.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use doorway_client::{Code, Life, Options, Scope, State, blocking};

use crate::common::daemon::{Daemon, REFUSED};
use crate::common::group::Group;
use crate::common::{PATIENCE, addresses, code, until};

/// One lock for each place where a permission may be.
const RULES: &str = "
[[lock]]
names = \"token\"
algorithm = \"suzuki-kasami\"
[[lock]]
names = \"tree\"
algorithm = \"naimi-trehel\"
[[lock]]
names = \"quorum\"
algorithm = \"maekawa\"
[[lock]]
names = \"both\"
algorithm = \"readers-writers\"
[[lock]]
names = \"pool\"
algorithm = \"raymond-k\"
permits = 2
";

#[test]
fn trying_gets_a_lock_that_is_free_at_another_node_but_not_a_held_one() {
    let group = Group::start(RULES);
    let clients: Vec<_> = group.nodes.iter().map(Daemon::client).collect();
    assert_eq!(clients[0].node().map(|node| node.scope), Some(Scope::Cluster));
    for lock in ["plain", "token", "tree", "quorum", "both"] {
        let mut last = None;
        for _ in 0..2 {
            for (index, client) in clients.iter().enumerate() {
                // The permission is at the node that used it last, and nobody holds the lock there.
                let grant = client.acquire(lock).try_now().enter();
                let grant = grant.unwrap_or_else(|error| panic!("{lock} at {index}: {error}"));
                assert!(Some(grant.fence()) > last, "{lock}");
                last = Some(grant.fence());
                let other = &clients[(index + 1) % 3];
                let refused = other.acquire(lock).try_now().enter().unwrap_err();
                assert_eq!(code(&refused), Code::NotFree, "{lock}: {refused}");
                grant.release().unwrap();
            }
        }
    }
}

#[test]
fn a_holder_at_another_node_is_named_and_can_be_broken_from_here() {
    let group = Group::start(RULES);
    let (one, other) = (group.nodes[0].client(), group.nodes[1].client());
    let grant = one.acquire("plain").enter().unwrap();
    let report = other.inspect("plain").unwrap();
    assert_eq!((report.holders.len(), report.holders[0].node.as_str()), (1, "n1"));
    assert_eq!(report.holders[0].fence, grant.fence());
    assert!(report.holders[0].client.starts_with("a client of n1"), "{report:?}");
    assert_eq!(grant.state(), State::Held);
    other.break_lock("plain", grant.fence()).unwrap();
    assert!(grant.release().is_err());
    other.acquire("plain").within(PATIENCE).enter().unwrap().release().unwrap();
}

#[test]
fn permits_are_as_configured_in_the_whole_group() {
    let group = Group::start(RULES);
    let clients: Vec<_> = group.nodes.iter().map(Daemon::client).collect();
    let refused = clients[0].acquire("plain").permits(3).enter().unwrap_err();
    assert_eq!(code(&refused), Code::NotServed);
    for part in ["[[lock]]", "names = \"plain\"", "permits = 3"] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    let permit = |client: &blocking::Client| client.acquire("pool").permits(2).try_now().enter();
    let (one, other) = (permit(&clients[0]).unwrap(), permit(&clients[1]).unwrap());
    assert_eq!(code(&permit(&clients[2]).unwrap_err()), Code::NotFree);
    assert_ne!(one.fence(), other.fence());
    one.release().unwrap();
    permit(&clients[2]).unwrap().release().unwrap();
    let refused = clients[0].acquire("pool").permits(5).enter().unwrap_err();
    assert!(refused.to_string().contains("2 permits"), "{refused}");
}

/// If the node of a holder is killed, the holder keeps its lock, and clients of other nodes wait.
#[test]
fn other_nodes_wait_for_a_holder_whose_node_is_killed() {
    let mut group = Group::start(RULES);
    let client = group.nodes[0].client();
    for lock in ["plain", "token"] {
        let grant = client.acquire(lock).enter().unwrap();
        let other = group.nodes[1].client();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| other.acquire(lock).enter().unwrap().fence());
            until("it waits", || other.status().unwrap().waiting == 1);
            group.nodes[0].kill();
            until("the other node misses it", || !other.status().unwrap().away.is_empty());
            assert!(!waits.is_finished(), "{lock}: two are inside");
            group.nodes[0].spawn();
            until("the group goes on", || {
                client.status().is_ok_and(|status| status.held == 1 && status.view.is_some())
            });
            assert_eq!(other.inspect(lock).unwrap().waiters.len(), 1);
            assert!(!waits.is_finished(), "{lock}: two are inside");
            assert_eq!(grant.state(), State::Held);
            let fence = grant.fence();
            grant.release().unwrap();
            assert!(waits.join().unwrap() > fence);
        });
    }
}

/// A lease has no connection, so its client cannot be notified that the node stops: the lease
/// continues when the node is back, and until then no other client gets the lock at any node.
#[test]
fn other_nodes_wait_for_a_lease_whose_node_stops() {
    let mut group = Group::start(RULES);
    let life = Life::Lease;
    let options = Options::default().ttl(Duration::from_secs(30)).life(life);
    let other = group.nodes[1].client();
    for lock in ["plain", "token"] {
        let script = blocking::Client::connect(group.nodes[0].endpoint(), &options).unwrap();
        let fence = script.acquire(lock).enter().unwrap().keep();
        drop(script);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| other.acquire(lock).enter().unwrap().fence());
            until("it waits", || other.status().unwrap().waiting == 1);
            group.nodes[0].stop();
            until("the other node misses it", || !other.status().unwrap().away.is_empty());
            assert!(!waits.is_finished(), "{lock}: two are inside");
            group.nodes[0].spawn();
            group.nodes[0].ready();
            let visitor = group.nodes[0].client();
            until("the group goes on", || visitor.status().unwrap().view.is_some());
            assert_eq!(other.inspect(lock).unwrap().waiters.len(), 1);
            assert!(!waits.is_finished(), "{lock}: two are inside");
            visitor.renew(lock, fence).unwrap();
            assert!(visitor.release(lock, fence).unwrap());
            assert!(waits.join().unwrap() > fence);
        });
    }
}

/// If another process takes the place of a node, holders are notified at once, however long `drain`
/// is.
#[test]
fn clients_of_a_replaced_node_lose_their_locks_at_once() {
    let mut group = Group::start(RULES);
    let place = Arc::clone(&group.place);
    let old = &mut group.nodes[0];
    old.stop();
    let text = fs::read_to_string(&old.file).unwrap();
    let text = text.replace("drain = \"100ms\"", "drain = \"10m\"");
    fs::write(&old.file, &text).unwrap();
    old.spawn();
    old.ready();
    let client = old.client();
    let grant = client.acquire("plain").enter().unwrap();
    // Its directory is copied, and another process is started with the copy.
    fs::create_dir(place.file("copy")).unwrap();
    fs::copy(place.file("n1/epoch"), place.file("copy/epoch")).unwrap();
    let own = text.split("name = \"n1\"\naddress = \"").nth(1).unwrap();
    let own = own.split('"').next().unwrap();
    let (sessions, http) = old.tcp.clone().unwrap();
    let mut text = text.replace("data = \"n1\"", "data = \"copy\"");
    for (address, free) in [own, &sessions, &http].into_iter().zip(addresses(3)) {
        text = text.replace(address, &free);
    }
    let text = text.split_once('\n').unwrap().1;
    let mut copy = Daemon::new(&place, "copy", text);
    copy.spawn();
    until("it is told", || grant.state() == State::Lost);
    assert_eq!(old.ended().code(), Some(REFUSED));
}

/// A node that restarts takes nothing from holders at other nodes.
#[test]
fn a_holder_keeps_its_lock_while_another_node_is_killed() {
    let mut group = Group::start(RULES);
    let client = group.nodes[2].client();
    client.on_lost(|lost| panic!("{lost}"));
    let grant = client.acquire("plain").enter().unwrap();
    group.nodes[0].crash();
    group.nodes[0].ready();
    let other = group.nodes[0].client();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| other.acquire("plain").enter().unwrap().fence());
        until("the group goes on", || {
            let status = other.status().unwrap();
            status.view.is_some() && status.waiting == 1
        });
        assert_eq!(code(&other.acquire("plain").try_now().enter().unwrap_err()), Code::NotFree);
        assert!(!waits.is_finished());
        let fence = grant.fence();
        grant.release().unwrap();
        assert!(waits.join().unwrap() > fence);
    });
}
