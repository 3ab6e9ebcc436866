//! The blocking client.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Endpoint, Endpoints, Error, LostGrant, ReleaseError, State};

use super::host::Host;
use super::{LONG, options, until};

fn client(host: &Host) -> Client {
    Client::connect(&host.endpoint, &options()).expect("the node listens")
}

#[test]
fn two_clients_take_turns() {
    let host = Host::unix(LONG);
    let (one, two) = (client(&host), client(&host));
    assert_eq!(one.node().unwrap().name, "one");
    let first = one.acquire("a").enter().unwrap();
    assert_eq!(first.state(), State::Held);
    assert_eq!(first.lock().as_str(), "a");
    assert!(first.remaining().unwrap() > Duration::from_secs(5));
    assert!(matches!(two.acquire("a").try_now().enter(), Err(Error::NotFree(_))));
    let waits = thread::spawn(move || two.acquire("a").enter().unwrap().fence());
    until("the request waits", || host.waiting() == 1);
    let fence = first.fence();
    first.release().unwrap();
    assert!(waits.join().unwrap() > fence);
    until("the release of the dropped grant", || host.count().0 == 0);
    drop(one);
    until("goodbye", || host.count().1 == 0);
}

#[test]
fn a_release_by_fence_never_frees_a_newer_grant() {
    let host = Host::unix(LONG);
    let client = client(&host);
    let old = client.acquire("a").enter().unwrap();
    let fence = old.fence();
    old.release().unwrap();
    let new = client.acquire("a").enter().unwrap();
    assert!(!client.release("a", fence).unwrap());
    assert_eq!(new.state(), State::Held);
    assert!(client.release("a", new.fence()).unwrap());
    assert!(new.is_lost());
    assert!(matches!(client.acquire("").enter(), Err(Error::Name(_))));
}

#[test]
fn threads_share_a_client() {
    let host = Host::unix(LONG);
    let client = client(&host);
    let inside = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let fences = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for thread in 0..8 {
            let (client, inside, fences) = (&client, &inside, &fences);
            scope.spawn(move || {
                for round in 0..10 {
                    let which = (thread + round) % 2;
                    let grant = client.acquire(["a", "b"][which]).enter().unwrap();
                    assert_eq!(inside[which].fetch_add(1, SeqCst), 0, "two inside");
                    fences.lock().unwrap().push((which, grant.fence()));
                    inside[which].fetch_sub(1, SeqCst);
                    grant.release().unwrap();
                }
            });
        }
    });
    let fences = fences.into_inner().unwrap();
    assert_eq!(fences.len(), 80);
    for which in 0..2 {
        let of: Vec<_> = fences.iter().filter(|it| it.0 == which).collect();
        assert!(of.is_sorted(), "fences grow");
    }
}

#[test]
fn lock_all_takes_locks_in_the_order_of_their_names() {
    let host = Host::unix(LONG);
    let (one, two) = (client(&host), client(&host));
    let grants = one.lock_all(["b", "a", "b"]).unwrap();
    let names: Vec<_> = grants.iter().map(|grant| grant.lock().as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let waits = thread::spawn(move || two.lock_all(["a", "b"]).unwrap().len());
    drop(grants);
    assert_eq!(waits.join().unwrap(), 2);
}

#[test]
fn a_grant_becomes_unsure_and_then_lost_when_the_node_is_silent() {
    let host = Host::unix(Duration::from_secs(3));
    let client = client(&host);
    let (tell, told) = mpsc::channel::<LostGrant>();
    client.on_lost(move |lost| tell.send(lost.clone()).unwrap());
    let grant = client.acquire("a").enter().unwrap();
    until("heartbeats", || host.heartbeats() > 0);
    assert_ne!(grant.state(), State::Lost);
    host.mute(true);
    until("the state to become unsure", || grant.state() != State::Held);
    let lost = told.recv_timeout(LONG).unwrap();
    assert_eq!((&lost.lock, lost.fence), (grant.lock(), grant.fence()));
    assert!(grant.is_lost());
    assert_eq!(grant.remaining(), Some(Duration::ZERO));
    assert_eq!(host.count().0, 1, "the node has not ended the session yet");
    host.mute(false);
    // The client opens a new session, and the lost grant stays lost.
    let again = client.acquire("a").enter().unwrap();
    assert!(again.fence() > grant.fence() && grant.is_lost());
    let ReleaseError::Lost(told) = grant.release().unwrap_err() else {
        panic!("the reason is known")
    };
    assert_eq!(told, lost);
    assert_eq!(again.state(), State::Held);
}

#[test]
fn a_held_lock_survives_a_crash_of_the_node() {
    let host = Host::unix(Duration::from_secs(2));
    let (one, two) = (client(&host), client(&host));
    let grant = one.acquire("a").enter().unwrap();
    let waits = thread::spawn(move || two.acquire("a").enter().unwrap().fence());
    until("the request waits", || host.waiting() == 1);
    host.crash();
    until("the reconnects", || host.connections() >= 4);
    assert!(matches!(one.acquire("a").try_now().enter(), Err(Error::NotFree(_))));
    assert_ne!(grant.state(), State::Lost);
    let fence = grant.fence();
    grant.release().unwrap();
    assert!(waits.join().unwrap() > fence);
}

#[test]
fn a_client_learns_that_its_node_is_stopping() {
    let host = Host::unix(LONG);
    let client = client(&host);
    assert_eq!(client.stopping(), None);
    host.drain(60_000);
    until("the announcement", || client.stopping().is_some());
    assert!(client.stopping().unwrap() <= Duration::from_mins(1));
    host.crash();
    until("the next one", || host.connections() == 2 && client.stopping().is_none());
}

#[test]
fn a_broken_lock_is_lost() {
    let host = Host::unix(LONG);
    let (one, two) = (client(&host), client(&host));
    let grant = one.acquire("a").enter().unwrap();
    two.break_lock("a", grant.fence()).unwrap();
    until("the loss", || grant.is_lost());
    assert_eq!(one.state(), State::Held);
    let ReleaseError::Lost(lost) = grant.release().unwrap_err() else {
        panic!("the reason is known")
    };
    assert_eq!(lost.reason, "broken by uid 1000");
}

#[test]
fn a_release_without_an_answer_is_unknown() {
    let host = Host::unix(LONG);
    let client = Client::connect(&host.endpoint, &options().patience(Duration::from_secs(2)));
    let client = client.unwrap();
    let grant = client.acquire("a").enter().unwrap();
    host.mute(true);
    let release = thread::spawn(move || grant.release().unwrap_err());
    // In real time: a node that does not read cannot show that the request was sent.
    thread::sleep(Duration::from_millis(20));
    drop(host);
    let error = release.join().unwrap();
    assert!(matches!(error, ReleaseError::Unknown { .. }), "{error}");
}

#[test]
fn the_loss_callback_may_panic_and_use_the_client() {
    let host = Host::unix(LONG);
    let (one, two) = (client(&host), client(&host));
    let (tell, told) = mpsc::channel();
    let handed = Mutex::new(Some(one.clone()));
    one.on_lost(|_| panic!("the first callback was replaced"));
    one.on_lost(move |lost| {
        assert_ne!(lost.lock.as_str(), "a", "a panic does not stop the callback");
        let client = handed.lock().unwrap().take().unwrap();
        let grant = client.acquire("c").enter().unwrap();
        tell.send((lost.clone(), grant.fence())).unwrap();
    });
    let (a, b) = (one.acquire("a").enter().unwrap(), one.acquire("b").enter().unwrap());
    two.break_lock("a", a.fence()).unwrap();
    two.break_lock("b", b.fence()).unwrap();
    let (lost, fence) = told.recv_timeout(LONG).unwrap();
    assert_eq!((lost.lock.as_str(), lost.fence), ("b", b.fence()));
    assert!(fence > b.fence());
    one.acquire("a").enter().unwrap().release().unwrap();
}

#[test]
fn a_timeout_while_the_node_is_silent_loses_no_lock() {
    let host = Host::unix(LONG);
    let patience = options().patience(Duration::from_secs(2));
    let client = Client::connect(&host.endpoint, &patience).unwrap();
    let held = client.acquire("a").enter().unwrap();
    host.mute(true);
    let refused = thread::scope(|scope| {
        let wait = || client.acquire("b").within(Duration::from_millis(50)).enter();
        scope.spawn(wait).join().unwrap().unwrap_err()
    });
    assert!(matches!(refused, Error::NotFree(_)), "{refused}");
    assert_eq!(held.state(), State::Held);
    host.mute(false);
    held.release().unwrap();
    assert_eq!(host.connections(), 1, "the connection was not closed");
}

#[test]
fn connecting_fails_at_once_if_nobody_listens() {
    let nowhere = Endpoint::parse("@doorway-clients-nobody").unwrap();
    let error = Client::connect(&nowhere, &options()).unwrap_err();
    assert!(error.to_string().starts_with("cannot reach a node at @doorway-clients-nobody: "));
}

#[test]
fn requests_are_refused_when_the_node_stays_away() {
    let host = Host::unix(Duration::from_secs(3));
    let patience = options().patience(Duration::from_secs(2));
    let client = Client::connect(&host.endpoint, &patience).unwrap();
    let grant = client.acquire("a").enter().unwrap();
    drop(host);
    let error = client.acquire("b").enter().unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    until("the loss", || grant.is_lost());
}

/// The endpoints of these nodes, after one where nobody listens.
fn endpoints(hosts: &[&Host]) -> Endpoints {
    let mut endpoints = Endpoints::from(Endpoint::Abstract("doorway-clients-nobody".to_owned()));
    for host in hosts {
        endpoints.push(host.endpoint.clone());
    }
    endpoints
}

#[test]
fn a_client_uses_the_first_node_that_answers() {
    let (silent, host) = (Host::unix(LONG), Host::unix(LONG));
    silent.mute(true);
    let patience = options().patience(Duration::from_secs(3));
    let client = Client::connect(endpoints(&[&silent, &host]), &patience).unwrap();
    client.acquire("a").enter().unwrap().release().unwrap();
    assert_eq!(host.connections(), 1);
    let nobody = endpoints(&[&silent]);
    let error = Client::connect(nobody, &options().patience(Duration::from_secs(1))).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("@doorway-clients-nobody") && text.contains("is it stopped?"), "{text}");
}

#[test]
fn a_request_that_waits_goes_on_at_the_next_node() {
    let (first, second) = (Host::unix(LONG), Host::unix(LONG));
    let holder = client(&first);
    let held = holder.acquire("a").enter().unwrap();
    let waiter = Client::connect(endpoints(&[&first, &second]), &options()).unwrap();
    let waits = thread::spawn(move || waiter.acquire("a").enter().map(|grant| grant.is_lost()));
    until("the request waits", || first.waiting() == 1);
    drop(first);
    assert!(!waits.join().unwrap().unwrap(), "it is held at the second node");
    assert_eq!(second.connections(), 1);
    drop(held);
}

#[test]
fn a_lock_is_lost_with_its_node_and_can_be_had_at_the_next_one() {
    let (first, second) = (Host::unix(Duration::from_secs(2)), Host::unix(LONG));
    // All nodes of a real group count their fences together; these two do not.
    client(&second).acquire("b").enter().unwrap().release().unwrap();
    let client = Client::connect(endpoints(&[&first, &second]), &options()).unwrap();
    let grant = client.acquire("a").enter().unwrap();
    drop(first);
    until("the loss", || grant.is_lost());
    assert_eq!(second.count().0, 0, "the second node has granted nothing");
    let again = client.acquire("a").enter().unwrap();
    assert!(grant.is_lost() && !again.is_lost());
    assert_eq!(second.count().0, 1);
}

#[test]
fn a_client_does_not_connect_without_a_pause_to_something_that_is_no_node() {
    let name = format!("doorway-clients-no-node-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&count);
    // It ends with the process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            accepted.fetch_add(1, SeqCst);
            drop(stream);
        }
    });
    let host = Host::unix(LONG);
    let mut all = Endpoints::from(&host.endpoint);
    all.push(Endpoint::Abstract(name));
    let client = Client::connect(all, &options().patience(Duration::from_secs(1))).unwrap();
    drop(host);
    let error = client.status().unwrap_err().to_string();
    assert!(error.contains("it closed the connection before it greeted"), "{error}");
    let count = count.load(SeqCst);
    assert!((2..40).contains(&count), "{count} connections in a second");
}
