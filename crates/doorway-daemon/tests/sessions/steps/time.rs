//! When sessions end.

use doorway_protocol::{Code, Fence, Reply, Request};

use super::*;

#[test]
fn a_heartbeat_in_the_last_moment_counts_and_one_after_it_is_refused() {
    let mut desk = Desk::new();
    let (connection, session) = desk.open(0, From::Network(1), TTL, CONNECTION);
    let held = desk.hold(0, connection, "a", 1);
    desk.pass(1999);
    desk.step(1999, Input::Heard(connection));
    let out = desk.pass(3998);
    assert!(released(&out).is_empty() && desk.sessions.len() == 1);
    let out = desk.pass(3999);
    assert_eq!(released(&out), [held]);
    let (lock, why) = (name("a"), "the session was silent for longer than its time to live");
    assert_eq!(told(&out), [(connection, Reply::Lost(lock, Fence::new(1, 1), why.into()))]);
    assert!(out.iter().any(|it| matches!(it, Output::Close(closed) if *closed == connection)));
    assert!(desk.request(4000, connection, Request::Alive(9)).is_empty(), "nothing is answered");
    let out = desk.resume(4000, From::Network(1), session, vec![claim("a", 1)]);
    assert_eq!(refused(&out).map(|refusal| refusal.code), Some(Code::Gone));
}

#[test]
fn a_lease_is_renewed_until_it_has_ended() {
    let mut desk = Desk::new();
    let (_, out) = desk.call(0, lease("a", None, 1000));
    let out = desk.grant(0, asked(&out).unwrap(), 1);
    assert!(matches!(answers(&out)[..], [(_, Answer::Leased(_))]), "{out:?}");
    let renew = |ttl| Call::Renew(name("a"), Fence::new(1, 1), ttl);
    desk.pass(999);
    let (_, out) = desk.call(999, renew(Some(Duration::from_millis(1500))));
    assert!(
        matches!(&answers(&out)[..], [(_, Answer::Leased(lease))] if lease.ttl.as_millis() == 1500)
    );
    assert!(out.iter().any(|it| matches!(it, Output::Rewrite(..))), "the ledger knows the TTL");
    desk.pass(2498);
    assert_eq!(desk.sessions.len(), 1);
    desk.pass(2499);
    let (_, out) = desk.call(2499, renew(None));
    assert!(matches!(&answers(&out)[..], [(_, Answer::Refused(it))] if it.code == Code::Gone));
    assert!(desk.sessions.is_clean() && desk.ledger.is_empty());
}

#[test]
fn a_tick_that_comes_too_late_gives_clients_time() {
    let mut desk = Desk::new();
    let (silent, _) = desk.open(0, From::Network(1), TTL, CONNECTION);
    let (heard, _) = desk.open(0, From::Network(2), TTL, CONNECTION);
    desk.hold(0, silent, "a", 1);
    desk.hold(0, heard, "b", 2);
    // The process was stopped for a while, and what clients sent meanwhile is not read yet.
    let out = desk.step(60_000, Input::Tick);
    assert!(out.is_empty(), "{out:?}");
    assert_eq!(desk.sessions.due(), at(60_250));
    desk.step(60_100, Input::Heard(heard));
    let out = desk.pass(60_250);
    assert_eq!((released(&out).len(), desk.sessions.len()), (1, 1));
    desk.step(60_300, Input::Heard(heard));
    desk.pass(62_299);
    assert_eq!(desk.sessions.held(), 1);
}

#[test]
fn a_session_of_a_process_ends_with_its_connection_and_not_before() {
    let mut desk = Desk::new();
    let (connection, _) = desk.open(0, From::Here, u32::MAX, CONNECTION);
    let held = desk.hold(0, connection, "a", 1);
    let out = desk.pass(100_000_000);
    assert!(out.is_empty() && desk.sessions.held() == 1, "a day of silence");
    assert_eq!(released(&desk.hang_up(100_000_001, connection)), [held]);
    assert!(desk.sessions.is_clean() && desk.ledger.is_empty());
}

#[test]
fn only_a_process_that_the_node_sees_has_a_session_without_a_ttl() {
    let mut desk = Desk::new();
    desk.open(0, From::Network(1), u32::MAX, CONNECTION);
    desk.pass(u64::from(TTL));
    assert!(desk.sessions.is_empty(), "a client of another machine has the longest TTL");
}

#[test]
fn the_end_of_a_connection_over_a_network_proves_nothing() {
    let mut desk = Desk::new();
    let (connection, session) = desk.open(0, From::Network(1), TTL, CONNECTION);
    desk.hold(0, connection, "a", 1);
    assert!(released(&desk.hang_up(1, connection)).is_empty());
    let out = desk.resume(1000, From::Network(1), session, vec![claim("a", 1)]);
    assert_eq!(welcome(&out).lost, []);
    desk.pass(2999);
    assert_eq!(desk.sessions.held(), 1, "the TTL counts from the hello");
}

#[test]
fn a_request_that_is_granted_before_its_client_repeats_it_is_granted_once() {
    let mut desk = Desk::new();
    let (connection, session) = desk.open(0, From::Network(1), TTL, CONNECTION);
    let ask = desk.acquire(0, connection, 5, "a");
    desk.step(0, Input::Queued(ask));
    desk.hang_up(100, connection);
    let connection = desk.connect(200, From::Network(1));
    desk.resume_over(200, connection, From::Network(1), session, Vec::new(), vec![5]);
    let out = desk.grant(300, ask, 1);
    let granted = [(connection, Reply::Granted(5, Fence::new(1, 1)))];
    assert_eq!(told(&out), granted);
    let repeated = desk.request(400, connection, Request::Acquire(5, super::ask("a")));
    assert_eq!((asked(&repeated), told(&repeated)), (None, granted.to_vec()));
    assert_eq!(desk.sessions.held(), 1);
}
