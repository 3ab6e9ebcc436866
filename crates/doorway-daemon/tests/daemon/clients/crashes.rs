//! The node is killed while its clients hold and wait.

use std::time::Duration;

use doorway_client::{Code, Life, Options, State, blocking};

use crate::common::daemon::Daemon;
use crate::common::{PATIENCE, code, until};

#[test]
fn a_holder_keeps_its_lock_and_its_fence_when_the_node_is_killed() {
    let mut daemon = Daemon::alone("");
    let client = daemon.client();
    let session = client.node().unwrap().session;
    client.on_lost(|lost| panic!("{lost}"));
    let grant = client.acquire("a").enter().unwrap();
    let shared = client.acquire("s").shared().enter().unwrap();
    let permit = client.acquire("p").permits(2).enter().unwrap();
    for _ in 0..3 {
        daemon.crash();
        daemon.ready();
        let other = daemon.client();
        assert_eq!(code(&other.acquire("a").try_now().enter().unwrap_err()), Code::NotFree);
        let report = other.inspect("a").unwrap();
        assert_eq!((report.holders.len(), report.holders[0].fence), (1, grant.fence()));
        assert_eq!(code(&other.acquire("s").try_now().enter().unwrap_err()), Code::NotFree);
        let together = other.acquire("s").shared().try_now().enter().unwrap();
        assert!(together.fence() >= shared.fence());
        assert_eq!(code(&other.acquire("p").permits(3).enter().unwrap_err()), Code::NotServed);
        let second = other.acquire("p").permits(2).try_now().enter().unwrap();
        assert_eq!(
            code(&other.acquire("p").permits(2).try_now().enter().unwrap_err()),
            Code::NotFree
        );
        drop((together, second));
        drop(other);
        // Otherwise the next start would wait for it.
        until("it has left", || client.status().is_ok_and(|status| status.sessions == 1));
        assert_eq!([&grant, &shared, &permit].map(blocking::Grant::state), [State::Held; 3]);
    }
    assert_eq!(client.node().unwrap().session, session);
    let fence = grant.fence();
    grant.release().unwrap();
    assert!(client.acquire("a").enter().unwrap().fence() > fence);
    shared.release().unwrap();
    permit.release().unwrap();
}

#[test]
fn waiting_clients_keep_waiting_when_the_node_is_killed_and_each_enters() {
    let mut daemon = Daemon::alone("");
    let client = daemon.client();
    let grant = client.acquire("a").enter().unwrap();
    let waiters: Vec<_> = (0..4).map(|_| daemon.client()).collect();
    let enter = |client: &blocking::Client| {
        let grant = client.acquire("a").enter().unwrap();
        let fence = grant.fence();
        grant.release().unwrap();
        fence
    };
    std::thread::scope(|scope| {
        let waits: Vec<_> = waiters.iter().map(|waiter| scope.spawn(|| enter(waiter))).collect();
        until("all wait", || client.status().is_ok_and(|status| status.waiting == 4));
        for _ in 0..2 {
            daemon.crash();
            until("all wait again", || {
                client.status().is_ok_and(|status| (status.waiting, status.held) == (4, 1))
            });
            assert_eq!(grant.state(), State::Held);
        }
        let mut last = grant.fence();
        grant.release().unwrap();
        let mut fences: Vec<_> = waits.into_iter().map(|wait| wait.join().unwrap()).collect();
        fences.sort_unstable();
        for fence in fences {
            assert!(fence > last);
            last = fence;
        }
    });
}

/// A request with a timeout ends in time, although no node answers.
#[test]
fn a_request_times_out_while_there_is_no_node() {
    let mut daemon = Daemon::alone("");
    let client = daemon.client();
    let grant = client.acquire("a").enter().unwrap();
    let other = daemon.client();
    let time = Duration::from_millis(400);
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| other.acquire("a").within(time).enter().map(drop));
        until("it waits", || client.status().unwrap().waiting == 1);
        daemon.kill();
        assert_eq!(code(&wait.join().unwrap().unwrap_err()), Code::Unavailable);
    });
    daemon.spawn();
    daemon.ready();
    // The request that was given up is not in the queue.
    grant.release().unwrap();
    daemon.client().acquire("a").within(PATIENCE).enter().unwrap().release().unwrap();
}

/// A restart is as gentle as a crash: a holder notices nothing, and no other client gets its lock.
#[test]
fn a_grant_is_held_over_a_graceful_stop() {
    let mut daemon = Daemon::alone("");
    let client = daemon.client();
    client.on_lost(|lost| panic!("{lost}"));
    let grant = client.acquire("a").enter().unwrap();
    daemon.stop();
    daemon.spawn();
    daemon.ready();
    let other = daemon.client();
    let refused = other.acquire("a").within(Duration::ZERO).enter();
    assert!(refused.is_err(), "two are inside");
    assert_eq!(grant.state(), State::Held);
    let fence = grant.fence();
    grant.release().unwrap();
    assert!(other.acquire("a").within(PATIENCE).enter().unwrap().fence() > fence);
}

/// The node restores sessions without a connection by itself.
#[test]
fn a_lease_is_held_over_a_crash() {
    let mut daemon = Daemon::alone("");
    let options = Options::default().ttl(Duration::from_secs(30)).life(Life::Lease);
    let script = blocking::Client::connect(daemon.endpoint(), &options).unwrap();
    let fence = script.acquire("a").enter().unwrap().keep();
    drop(script);
    daemon.crash();
    daemon.ready();
    let client = daemon.client();
    assert_eq!(code(&client.acquire("a").try_now().enter().unwrap_err()), Code::NotFree);
    client.renew("a", fence).unwrap();
    assert!(client.release("a", fence).unwrap());
    assert!(client.acquire("a").enter().unwrap().fence() > fence);
}
