//! How sessions end, and how they are resumed.

use std::time::{Duration, Instant};

use doorway_daemon::listen::Doors;
use doorway_daemon::serve;
use doorway_daemon::settings::{Settings, Socket};
use doorway_protocol::{Claim, Code, Life, Mode, Opening, Reply, Request, Wait};

use super::client::{CONNECTION, Client, NO_TTL, ask, name};
use super::process;
use crate::common::settings::settings;
use crate::common::{fresh, until};
use crate::server::{Server, connect};

/// The shortest time to live of a session.
const SHORT: u32 = 500;

#[test]
fn a_client_that_disconnects_loses_its_locks_at_once() {
    let server = Server::start(&settings());
    let (mut one, mut other) = (server.session(), server.session());
    one.acquire("a");
    one.ask("b", Wait::Forever);
    let number = other.ask("a", Wait::Forever);
    server.until("one waits", |service| service.status().waiting == 1);
    let gone = Instant::now();
    drop(one);
    other.granted(number);
    // Far below the time to live of ten seconds; mostly less than a millisecond.
    assert!(gone.elapsed() < Duration::from_secs(2), "{:?}", gone.elapsed());
    server.until("its session is over", |service| service.sessions() == 1);
}

#[test]
fn a_client_that_hangs_loses_its_locks_after_its_timeout_and_is_told() {
    let server = Server::start(&settings());
    let (mut one, mut other) = (server.client(), server.session());
    let welcome = one.open(SHORT, CONNECTION);
    assert_eq!(welcome.ttl_ms, SHORT);
    let fence = one.acquire("a");
    let heard = Instant::now();
    let number = other.ask("a", Wait::Forever);
    let newer = other.granted(number);
    assert!(heard.elapsed() >= Duration::from_millis(u64::from(SHORT) - 10), "too early");
    assert!(newer > fence);
    let Reply::Lost(lock, lost, _) = one.reply() else { panic!("not told") };
    assert_eq!((lock.as_str(), lost), ("a", fence));
    assert_eq!(one.frame::<Reply>(), None, "the connection ends with the session");
}

#[test]
fn heartbeats_are_answered_and_a_farewell_ends_the_session() {
    let server = Server::start(&settings());
    let mut one = server.session();
    one.acquire("a");
    for number in [7, 8] {
        one.send(&Request::Alive(number));
        assert_eq!(one.reply(), Reply::Alive(number));
    }
    assert_eq!(server.service.held(), 1);
    one.send(&Request::Bye);
    assert_eq!(one.frame::<Reply>(), None);
    server.until("it is over", |service| service.held() == 0 && service.sessions() == 0);
}

/// A process that inherited the connection of a dead process sends no heartbeats.
#[test]
fn an_inherited_connection_holds_the_session_until_the_last_has_closed_it() {
    let server = Server::start(&settings());
    let mut holding = process::holding(&server.name, "a", SHORT, true);
    holding.kill();
    let mut other = server.session();
    let number = other.ask("a", Wait::No);
    assert_eq!(other.refused(number).code, Code::NotFree, "its child has the connection");
    let number = other.ask("a", Wait::Forever);
    holding.kill_child();
    other.granted(number);
}

/// A living client that sends no heartbeats counts as hanging, even if another process has
/// inherited its connection.
#[test]
fn an_inherited_connection_does_not_help_a_process_that_hangs() {
    let server = Server::start(&settings());
    let _holding = process::holding(&server.name, "a", SHORT, true);
    server.until("it is lost", |service| service.held() == 0);
}

#[test]
fn a_session_bound_to_a_process_ends_with_it() {
    let server = Server::start(&settings());
    let mut sleeper = process::Sleeper::start();
    let mut script = server.client();
    script.open(SHORT, Life::Process { pid: sleeper.0.id() });
    let fence = script.acquire("a");
    drop(script);
    server.until("its connection has ended", |service| service.connections() == 0);
    assert_eq!(server.service.held(), 1, "it needs no connection");
    sleeper.kill();
    server.until("it ended with the process", |service| service.held() == 0);
    let mut visitor = server.client();
    visitor.visit();
    assert!(!visitor.release("a", fence));
    let refused = server.client().hello(Opening::New { ttl_ms: 0, life: Life::Process { pid: 0 } });
    assert_eq!(refused.unwrap_err().code, Code::Invalid);
}

#[test]
fn a_lease_ends_at_its_expiry_unless_it_is_released() {
    let server = Server::start(&settings());
    let lease = |lock: &str, ttl_ms| {
        let mut script = server.client();
        script.open(ttl_ms, Life::Lease);
        script.acquire(lock)
    };
    let (one, other) = (lease("a", 10_000), lease("b", SHORT));
    let mut visitor = server.client();
    visitor.visit();
    visitor.send(&Request::Renew(3, name("a"), one));
    assert_eq!(visitor.reply(), Reply::Done(3));
    server.until("the other one has ended", |service| service.held() == 1);
    visitor.send(&Request::Renew(4, name("b"), other));
    assert_eq!(visitor.refused(4).code, Code::Gone);
    assert_eq!(server.service.held(), 1);
    assert!(visitor.release("a", one));
    assert!(!visitor.release("a", one));
    assert_eq!(server.service.sessions(), 0, "nobody could use it any more");
}

/// A connection that the service closes does not end its session: here the reader was too slow.
#[test]
fn a_session_is_resumed_over_another_connection() {
    let server = Server::start(&settings());
    let (mut one, mut other) = (server.client(), server.session());
    let welcome = one.open(10_000, CONNECTION);
    let (session, secret) = welcome.session.unwrap();
    let (kept, given_up) = (one.acquire("kept"), one.acquire("given-up"));
    other.acquire("wanted");
    let waiting = one.ask("wanted", Wait::Forever);
    let _unwanted = one.ask("wanted", Wait::Forever);
    let repeated = one.ask("granted", Wait::Forever);
    let granted = one.granted(repeated);
    server.until("two wait", |service| service.status().waiting == 2);
    let claim = |lock: &str, fence, request| Claim {
        lock: name(lock),
        mode: Mode::Exclusive,
        permits: None,
        fence,
        request,
    };
    let resume = |secret, held: Vec<Claim>| Opening::Resume {
        node: None,
        session,
        secret,
        ttl_ms: 10_000,
        life: CONNECTION,
        held,
        waiting: vec![waiting, repeated],
        more: false,
    };
    let mut wrong = secret;
    wrong.0[15] ^= 1;
    let refused = server.client().hello(resume(wrong, Vec::new())).unwrap_err();
    assert_eq!(refused.code, Code::Gone);
    let mut again = server.client();
    let claims = vec![claim("kept", kept, 1), claim("never", kept, 9)];
    let welcome = again.hello(resume(secret, claims.clone())).unwrap();
    assert_eq!(welcome.session, Some((session, secret)));
    assert_eq!(welcome.lost, [claims[1].clone()]);
    assert_eq!(again.granted(repeated), granted, "a grant that may not have been heard");
    again.send(&Request::Acquire(repeated, ask("granted", Wait::Forever)));
    assert_eq!(again.granted(repeated), granted, "the same request is the same grant");
    again.send(&Request::Acquire(waiting, ask("wanted", Wait::Forever)));
    assert_eq!(one.frame::<Reply>(), None, "the old connection is over");
    drop(one);
    server.until("one request was withdrawn", |service| service.status().waiting == 1);
    assert!(!again.release("given-up", given_up), "what was not claimed was released");
    drop(other);
    again.granted(waiting);
    assert!(again.release("kept", kept));
}

#[test]
fn a_service_that_drains_tells_all_clients_and_takes_no_lock_from_a_holder() {
    let server = Server::start(&settings());
    let (mut quick, mut slow) = (server.session(), server.session());
    let fence = quick.acquire("a");
    slow.acquire("b");
    let number = slow.ask("a", Wait::Forever);
    server.until("one waits", |service| service.status().waiting == 1);
    let service = server.service.clone();
    let draining =
        server.runtime.spawn(async move { service.drain(Duration::from_millis(300)).await });
    assert_eq!(quick.reply(), Reply::Stopping(300));
    assert_eq!(slow.reply(), Reply::Stopping(300));
    assert_eq!(slow.refused(number).code, Code::Unavailable);
    let late = quick.ask("c", Wait::No);
    assert_eq!(quick.refused(late).code, Code::Unavailable);
    assert!(quick.release("a", fence), "there is time to finish");
    assert!(!server.runtime.block_on(draining).unwrap(), "one lock is still held");
    server.runtime.block_on(server.service.stop());
    assert_eq!(slow.frame::<Reply>(), None, "its connection is closed");
    assert_eq!(server.service.held(), 1, "its lock is left to the next process");
}

#[test]
fn clients_are_told_of_locks_that_the_node_loses() {
    let server = Server::start(&settings());
    let mut events = server.service.events();
    let mut one = server.session();
    let fence = one.acquire("a");
    let number = one.ask_for(doorway_protocol::Ask { permits: Some(2), ..ask("b", Wait::No) });
    let permit = one.granted(number);
    let mut script = server.client();
    script.open(60_000, Life::Lease);
    script.acquire("c");
    drop(script);
    // As if another process takes its place.
    server.runtime.block_on(server.service.node().stop());
    let mut lost = [one.reply(), one.reply()].map(|reply| match reply {
        Reply::Lost(lock, fence, _) => (lock.to_string(), fence),
        other => panic!("not told: {other:?}"),
    });
    lost.sort();
    assert_eq!(lost, [("a".to_owned(), fence), ("b".to_owned(), permit)]);
    assert!(!one.release("a", fence));
    server.until("nothing is held", |service| service.held() == 0);
    server.until("the lease is over", |service| service.sessions() == 1);
    let kinds = std::iter::from_fn(|| events.try_recv().ok()).map(|event| event.kind);
    let lost = doorway_daemon::service::EventKind::Lost;
    assert_eq!(kinds.filter(|kind| *kind == lost).count(), 3);
}

/// The clock of the test jumps ahead whenever the service only waits.
#[tokio::test(start_paused = true)]
async fn a_service_ends_when_it_was_idle_but_not_while_it_has_a_session() {
    let name = fresh();
    let socket = Some(Socket::Abstract(name.clone()));
    let settings = Settings { socket, idle_stop: Some(Duration::from_mins(1)), ..settings() };
    let mut service = Box::pin(serve::run(settings, Doors::default(), std::future::pending()));
    let open = tokio::task::spawn_blocking(move || {
        until("the service listens", || connect(&name).is_ok());
        let mut client = Client::new(&name);
        client.open(NO_TTL, CONNECTION);
        client
    });
    let client = tokio::select! {
        client = open => client.unwrap(),
        ended = &mut service => panic!("{ended:?}"),
    };
    tokio::select! {
        () = tokio::time::sleep(Duration::from_hours(1)) => {}
        ended = &mut service => panic!("{ended:?}"),
    }
    drop(client);
    service.await.unwrap();
}
