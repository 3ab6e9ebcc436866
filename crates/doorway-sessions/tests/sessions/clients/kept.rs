//! Clients that keep locks until somebody else wants them.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use doorway_client::{Error, State, blocking};

use super::host::Host;
use super::{LONG, options, until};

fn keeper(host: &Host) -> blocking::Client {
    blocking::Client::connect(&host.endpoint, &options().keep()).expect("the node listens")
}

fn client(host: &Host) -> blocking::Client {
    blocking::Client::connect(&host.endpoint, &options()).expect("the node listens")
}

#[test]
fn a_kept_lock_is_entered_again_without_the_node() {
    let host = Host::unix(LONG);
    let client = keeper(&host);
    let first = client.acquire("a").enter().unwrap();
    let mut last = first.fence();
    drop(first);
    // The node neither reads nor writes.
    host.mute(true);
    for _ in 0..100 {
        let grant = client.acquire("a").enter().unwrap();
        assert!(grant.fence() > last && grant.state() == State::Held);
        last = grant.fence();
        grant.release().unwrap();
    }
    host.mute(false);
    assert_eq!(host.count(), (1, 1), "it is held for the client");
    drop(client);
    until("goodbye", || host.count() == (0, 0));
}

#[test]
fn another_client_gets_a_kept_lock_at_once_if_the_keeper_is_outside() {
    let host = Host::unix(LONG);
    let (keeper, other) = (keeper(&host), client(&host));
    let kept = keeper.acquire("a").enter().unwrap().fence();
    let tried = other.acquire("a").try_now().enter().unwrap();
    assert!(tried.fence() > kept);
    assert!(matches!(keeper.acquire("a").try_now().enter(), Err(Error::NotFree(_))));
    tried.release().unwrap();
    let again = keeper.acquire("a").enter().unwrap();
    other.await_free("b").unwrap();
    drop(again);
    other.acquire("a").within(LONG).enter().unwrap().release().unwrap();
}

#[test]
fn a_keeper_that_is_inside_gives_the_lock_back_when_it_leaves() {
    let host = Host::unix(LONG);
    let (keeper, other) = (keeper(&host), client(&host));
    drop(keeper.acquire("a").enter().unwrap());
    let inside = keeper.acquire("a").enter().unwrap();
    assert!(matches!(other.acquire("a").try_now().enter(), Err(Error::NotFree(_))));
    let waits = thread::spawn(move || other.acquire("a").enter().unwrap().fence());
    until("the request waits", || host.waiting() == 1);
    assert_eq!(inside.state(), State::Held);
    let fence = inside.fence();
    inside.release().unwrap();
    assert!(waits.join().unwrap() > fence);
    assert!(keeper.acquire("a").enter().unwrap().fence() > fence);
}

#[test]
fn threads_of_two_clients_that_keep_the_lock_exclude_each_other() {
    let host = Host::unix(LONG);
    let (clients, inside) = ([keeper(&host), keeper(&host)], AtomicUsize::new(0));
    let last = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (client, inside, last) = (&clients[thread % 2], &inside, &last);
            scope.spawn(move || {
                for round in 0..100 {
                    let grant = client.acquire("a").enter().unwrap();
                    assert_eq!(inside.fetch_add(1, SeqCst), 0, "two inside");
                    let fence = usize::try_from(grant.fence().get()).unwrap();
                    assert!(last.swap(fence, SeqCst) < fence, "fences grow");
                    inside.fetch_sub(1, SeqCst);
                    if round % 2 == 0 { drop(grant) } else { grant.release().unwrap() }
                }
            });
        }
    });
}

#[test]
fn a_kept_lock_is_asked_for_again_after_a_crash_of_the_node() {
    let host = Host::unix(LONG);
    let client = keeper(&host);
    let before = client.acquire("a").enter().unwrap().fence();
    host.crash();
    until("the next connection", || host.connections() > 1);
    let after = client.acquire("a").enter().unwrap();
    assert!(after.fence() > before);
    assert_eq!(after.state(), State::Held);
}

#[test]
fn a_node_that_drains_gets_kept_locks_back() {
    let host = Host::unix(LONG);
    let client = keeper(&host);
    drop(client.acquire("a").enter().unwrap());
    drop(client.acquire("b").enter().unwrap());
    assert_eq!(host.count().0, 2);
    host.drain(10_000);
    until("nothing is held", || host.count().0 == 0);
    assert!(client.acquire("a").within(Duration::from_millis(50)).enter().is_err());
}

#[test]
fn a_client_that_does_not_keep_locks_gives_them_back() {
    let host = Host::unix(LONG);
    let client = client(&host);
    client.acquire("a").enter().unwrap().release().unwrap();
    assert_eq!(host.count(), (0, 1));
}

/// The tasks run on one thread, so the loop must let the driver run, which hears of the other
/// client.
#[tokio::test]
async fn a_task_that_enters_again_and_again_lets_another_client_in() {
    let host = Host::unix(LONG);
    let connect = async |options| {
        doorway_client::Client::connect(&host.endpoint, options).await.expect("the node listens")
    };
    let (keeper, other) = (connect(&options().keep()).await, connect(&options()).await);
    let mut last = keeper.acquire("a").enter().await.unwrap().fence();
    let waits = tokio::spawn(async move { other.acquire("a").enter().await.unwrap().fence() });
    while !waits.is_finished() {
        let grant = keeper.acquire("a").enter().await.unwrap();
        assert!(grant.fence() > last);
        last = grant.fence();
        grant.release().await.unwrap();
    }
    assert_ne!(waits.await.unwrap(), last);
}
