//! What becomes of requests and of grants when the node does not answer.

use std::time::Duration;

use doorway_client::machine::{Event, SessionMachine, Setup, State, UNLIMITED};
use doorway_client::{Code, Fence, Life, Moment, Name, Refusal, Wait};
use doorway_protocol::{ClockReading, LeaseClock, Opening, Reply, Request};

use super::messages::{
    CONNECTION, ask, at, hello, holding, holding_over, machine, reply, requests, setup, welcome,
    welcome_as, welcome_unlimited,
};

#[test]
fn requests_time_out_if_no_node_can_be_reached() {
    let mut machine = machine(CONNECTION);
    let soon = machine.acquire(at(0), ask("a", Wait::Ms(1000)));
    let late = machine.acquire(at(5000), ask("a", Wait::Forever));
    assert_eq!(machine.next_due(), at(1000));
    machine.tick(at(999));
    assert_eq!(machine.event(), None);
    machine.tick(at(1000));
    let Some(Event::Refused { number, refusal }) = machine.event() else { panic!() };
    assert_eq!(
        (number, refusal.code),
        (soon, Code::Unavailable),
        "it is not known whether the lock was free"
    );
    assert_eq!(machine.next_due(), at(25_000), "patience counts from the request");
    machine.tick(at(25_000));
    let Some(Event::Refused { number, refusal }) = machine.event() else { panic!() };
    assert_eq!((number, refusal.code), (late, Code::Unavailable));
    assert_eq!(machine.next_due(), Moment::NEVER);
}

#[test]
fn a_wait_times_out_if_the_node_hangs() {
    let (mut machine, _) = holding(CONNECTION);
    let number = machine.acquire(at(10), ask("b", Wait::Ms(500)));
    assert_eq!(machine.next_due(), at(2500), "the answer may be on its way");
    machine.tick(at(2509));
    assert_eq!(machine.event(), None);
    machine.tick(at(2510));
    let Some(Event::Refused { number: refused, refusal }) = machine.event() else { panic!() };
    assert_eq!((refused, refusal.code), (number, Code::NotFree));
    let sent = requests(&mut machine);
    assert_eq!(sent.last(), Some(&Request::Withdraw(number)), "{sent:?}");
    assert!(!machine.must_close());
}

/// A machine that has no session and was welcomed at once.
fn visiting() -> SessionMachine {
    let setup = Setup { session: None, ..setup(CONNECTION, false) };
    let mut machine = SessionMachine::new(setup, at(0));
    machine.connected(at(0));
    assert!(matches!(hello(&mut machine).0, Opening::Visit));
    welcome_as(&mut machine, at(1), None);
    machine
}

#[test]
fn a_client_without_a_session_notices_a_dead_node() {
    let mut machine = visiting();
    assert_eq!(machine.next_due(), Moment::NEVER, "no request waits");
    let number = machine.await_free(at(50_000), &Name::new("a").unwrap());
    assert_eq!(requests(&mut machine).len(), 1);
    assert_eq!(machine.next_due(), at(55_000), "a quarter of the patience");
    machine.tick(at(55_000));
    let [Request::Alive(sign)] = requests(&mut machine)[..] else { panic!("no heartbeat") };
    reply(&mut machine, at(55_001), &Reply::Alive(sign));
    for ms in [60_001, 65_001, 70_001, 75_000] {
        machine.tick(at(ms));
    }
    assert!(!machine.must_close() && !requests(&mut machine).is_empty());
    machine.tick(at(75_001));
    assert!(machine.must_close(), "nothing was heard for the time of the patience");
    machine.disconnected(at(75_001));
    machine.connected(at(76_000));
    assert_eq!(machine.next_due(), at(95_001), "the request times out then");
    machine.tick(at(95_001));
    let Some(Event::Refused { number: refused, refusal }) = machine.event() else { panic!() };
    assert_eq!((refused, refusal.code), (number, Code::Unavailable));
    machine.tick(at(96_000));
    assert!(machine.must_close(), "the greeting is not answered");
}

#[test]
fn a_client_that_was_suspended_asks_before_it_gives_the_node_up() {
    let mut machine = visiting();
    machine.await_free(at(50_000), &Name::new("a").unwrap());
    requests(&mut machine);
    machine.tick(at(90_000));
    assert!(!machine.must_close());
    let [Request::Alive(sign)] = requests(&mut machine)[..] else { panic!("no heartbeat") };
    reply(&mut machine, at(90_001), &Reply::Alive(sign));
    machine.tick(at(95_000));
    assert!(!machine.must_close(), "the node has answered");
}

#[test]
fn a_silent_connection_is_replaced_before_anything_is_lost() {
    let (mut machine, fence) = holding_over(CONNECTION, true);
    machine.tick(at(2500));
    machine.tick(at(4999));
    assert!(!machine.must_close());
    machine.tick(at(5000));
    assert!(machine.must_close(), "the state is unsure");
    assert_eq!(machine.event(), None, "but nothing is lost");
    machine.disconnected(at(5000));
    machine.connected(at(5100));
    assert!(matches!(hello(&mut machine).0, Opening::Resume { .. }));
    machine.tick(at(7600));
    assert!(machine.must_close(), "the second connection is silent as well");
    machine.disconnected(at(7600));
    machine.connected(at(7700));
    hello(&mut machine);
    welcome(&mut machine, at(7800));
    let state = machine.grant_state(&Name::new("a").unwrap(), fence, at(12_000));
    assert_eq!(state, State::Held);

    let (mut machine, _) = holding(CONNECTION);
    for ms in (2500..9500).step_by(500) {
        machine.tick(at(ms));
        assert!(!machine.must_close(), "on a Unix socket a new connection would not help");
    }
    let (mut machine, _) = holding_over(Life::Lease, true);
    machine.tick(at(9000));
    assert!(!machine.must_close(), "no heartbeat was sent");
    machine.acquire(at(9000), ask("b", Wait::Forever));
    machine.tick(at(9000));
    machine.tick(at(9400));
    assert!(!machine.must_close(), "the node has had too little time to answer");
}

#[test]
fn a_change_without_an_answer_is_unknown() {
    let (mut machine, fence) = holding(CONNECTION);
    let a = Name::new("a").unwrap();
    let number = machine.acquire(at(3), ask("c", Wait::Forever));
    reply(&mut machine, at(3), &Reply::Granted(number, Fence::new(1, 6)));
    assert!(matches!(machine.event(), Some(Event::Granted { .. })));
    let (release, broken) =
        (machine.release(at(4), &a, fence), machine.break_lock(at(4), &a, fence));
    let (renewed, inspected) = (machine.renew(at(4), &a, fence), machine.inspect(at(4), &a));
    machine.disconnected(at(5));
    let unsent = machine.break_lock(at(6), &a, fence);
    let late = machine.release(at(6), &Name::new("c").unwrap(), Fence::new(1, 6));
    machine.tick(at(9503));
    let gone = |event: Option<Event>| match event {
        Some(Event::Unknown { number, refusal }) => (number, refusal.code, true),
        Some(Event::Refused { number, refusal }) => (number, refusal.code, false),
        other => panic!("{other:?}"),
    };
    assert_eq!(gone(machine.event()), (release, Code::Gone, true));
    let lost = Event::Released { number: late, held: false };
    assert_eq!(machine.event(), Some(lost), "it was lost before the release was sent");
    machine.tick(at(20_006));
    for (number, unknown) in [(broken, true), (renewed, true), (inspected, false), (unsent, false)]
    {
        assert_eq!(gone(machine.event()), (number, Code::Unavailable, unknown));
    }
    assert_eq!(machine.event(), None);
}

#[test]
fn a_release_is_sent_even_after_its_caller_gave_up() {
    let slow = Setup { patience: Duration::from_secs(1), ..setup(CONNECTION, true) };
    let mut machine = SessionMachine::new(slow, at(0));
    machine.connected(at(0));
    let number = machine.acquire(at(0), ask("a", Wait::Forever));
    hello(&mut machine);
    welcome(&mut machine, at(1));
    let (lock, fence) = (Name::new("a").unwrap(), Fence::new(1, 5));
    reply(&mut machine, at(2), &Reply::Granted(number, fence));
    machine.disconnected(at(10));
    let release = machine.release(at(10), &lock, fence);
    machine.connected(at(1009));
    let (opening, ..) = hello(&mut machine);
    let Opening::Resume { held, .. } = opening else { panic!("a new session") };
    assert_eq!(held.len(), 1, "the release was not sent, so the lock is still claimed");
    while machine.event().is_some() {}
    machine.tick(at(1010));
    assert!(matches!(machine.event(), Some(Event::Refused { .. })), "patience ends");
    assert!(machine.next_due() > at(1010));
    welcome(&mut machine, at(1011));
    assert_eq!(requests(&mut machine), [Request::Release(release, lock, fence)]);
    reply(&mut machine, at(1012), &Reply::Released(release, true));
    assert_eq!(machine.event(), None);
}

#[test]
fn a_loss_during_a_release_is_reported_with_its_reason() {
    let (mut machine, fence) = holding(CONNECTION);
    let lock = Name::new("a").unwrap();
    let number = machine.release(at(4), &lock, fence);
    let reason = "broken by someone".to_owned();
    reply(&mut machine, at(5), &Reply::Lost(lock.clone(), fence, reason.clone()));
    reply(&mut machine, at(5), &Reply::Released(number, false));
    assert_eq!(machine.event(), Some(Event::Lost { lock, fence, reason }));
    assert_eq!(machine.event(), Some(Event::Released { number, held: false }));
}

#[test]
fn a_request_with_a_timeout_waits_for_a_node_until_then() {
    let mut machine = machine(CONNECTION);
    let number = machine.acquire(at(0), ask("a", Wait::Ms(60_000)));
    assert_eq!(machine.next_due(), at(60_000), "longer than the patience, which is 20 s");
    machine.cannot_connect("north", "Connection refused");
    machine.cannot_connect("south", "timed out");
    machine.tick(at(60_000));
    let Some(Event::Refused { number: refused, refusal }) = machine.event() else { panic!() };
    assert_eq!((refused, refusal.code), (number, Code::Unavailable));
    let text = "no node answered within 60 s at north (Connection refused), at south (timed out)";
    assert_eq!(refusal.text, text);
}

#[test]
fn the_reason_why_no_node_answers_is_named() {
    let refused = |mut machine: SessionMachine, ms: u64| {
        machine.tick(at(ms));
        let Some(Event::Refused { refusal, .. }) = machine.event() else { panic!() };
        refusal.text
    };
    let mut machine = machine(CONNECTION);
    machine.status(at(0));
    machine.connected_to(at(0), "@node", false);
    let text = refused(machine, 20_000);
    assert!(text.contains("20 s at @node (it accepts connections but does not answer"), "{text}");

    let mut machine = super::messages::machine(CONNECTION);
    machine.status(at(0));
    machine.connected_to(at(0), "@node", false);
    machine.disconnected(at(1));
    assert!(machine.is_turned_away());
    let text = refused(machine, 20_000);
    assert!(text.contains("at @node (it closed the connection before it greeted"), "{text}");

    for (bytes, what) in [(&b"HTTP/1.1 400 Bad"[..], "HTTP"), (&[21, 3, 3, 0, 2, 2, 10], "TLS")] {
        let mut machine = super::messages::machine(CONNECTION);
        machine.status(at(0));
        machine.connected_to(at(0), "@node", false);
        machine.receive(at(1), bytes);
        let Some(Event::Refused { refusal, .. }) = machine.event() else { panic!() };
        assert_eq!(refusal.code, Code::Invalid);
        assert!(refusal.text.contains("@node") && refusal.text.contains(what), "{refusal}");
        assert!(machine.must_close());
    }
}

/// A machine that may use two nodes, and is connected to the first one.
fn with_two_nodes() -> SessionMachine {
    let setup = Setup { nodes: 2, ..setup(CONNECTION, true) };
    let mut machine = SessionMachine::new(setup, at(0));
    machine.connected_to(at(0), "one", true);
    hello(&mut machine);
    welcome(&mut machine, at(1));
    machine
}

#[test]
fn requests_that_wait_go_to_the_next_node_and_grants_do_not() {
    let mut machine = with_two_nodes();
    let waits = machine.acquire(at(2), ask("a", Wait::Forever));
    requests(&mut machine);
    assert!(!machine.is_bound());
    machine.disconnected(at(3));
    machine.connected_to(at(4), "two", true);
    let (opening, _, sent) = hello(&mut machine);
    assert!(matches!(opening, Opening::New { .. }), "the other node does not know the session");
    assert!(matches!(sent[..], [Request::Acquire(number, _)] if number == waits));
    welcome(&mut machine, at(5));
    let (lock, fence) = (Name::new("a").unwrap(), Fence::new(1, 5));
    reply(&mut machine, at(6), &Reply::Granted(waits, fence));
    assert!(machine.is_bound(), "only the second node knows of the grant");
    machine.disconnected(at(7));
    while machine.event().is_some() {}

    // A driver that goes elsewhere all the same loses the grant.
    machine.connected_to(at(8), "one", true);
    assert!(matches!(hello(&mut machine).0, Opening::New { .. }));
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));
    assert_eq!(machine.grant_state(&lock, fence, at(8)), State::Lost);
}

#[test]
fn a_grant_is_lost_at_the_end_of_its_ttl_and_then_another_node_will_do() {
    let mut machine = with_two_nodes();
    let number = machine.acquire(at(2), ask("a", Wait::Forever));
    reply(&mut machine, at(3), &Reply::Granted(number, Fence::new(1, 5)));
    let waits = machine.acquire(at(3), ask("b", Wait::Forever));
    machine.disconnected(at(4));
    while machine.event().is_some() {}
    machine.tick(at(9000));
    assert!(machine.is_bound() && machine.event().is_none());
    machine.tick(at(9503));
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));
    assert!(!machine.is_bound());
    machine.connected_to(at(9600), "two", true);
    let (opening, _, sent) = hello(&mut machine);
    assert!(matches!(opening, Opening::New { .. }));
    assert!(matches!(sent[..], [Request::Acquire(number, _)] if number == waits));
}

#[test]
fn a_node_that_does_not_serve_now_is_not_the_last_word() {
    let mut machine = with_two_nodes();
    let number = machine.acquire(at(2), ask("a", Wait::Forever));
    let stops = || Refusal { code: Code::Unavailable, text: "the node stops".to_owned() };
    reply(&mut machine, at(3), &Reply::Refused(number, stops()));
    while let Some(event) = machine.event() {
        assert!(matches!(event, Event::Welcome { .. }), "{event:?}");
    }
    assert!(machine.must_close() && machine.is_turned_away());
    machine.disconnected(at(4));
    machine.connected_to(at(5), "two", true);
    let (_, _, sent) = hello(&mut machine);
    assert!(matches!(sent[..], [Request::Acquire(again, _)] if again == number));
    welcome(&mut machine, at(6));
    reply(&mut machine, at(7), &Reply::Refused(number, stops()));
    let refused = Event::Refused { number, refusal: stops() };
    assert_eq!(machine.event(), Some(refused), "every node has refused it");
}

#[test]
fn a_session_that_nobody_waits_for_any_more_is_ended() {
    let mut machine = machine(Life::Lease);
    machine.acquire(at(0), ask("a", Wait::No));
    machine.connected_to(at(0), "@node", false);
    machine.tick(at(20_000));
    assert!(machine.must_close());
    let (opening, _, sent) = hello(&mut machine);
    assert!(matches!(opening, Opening::New { .. }));
    assert!(matches!(sent[..], [Request::Bye]), "nothing was asked for yet: {sent:?}");
}

/// A machine that holds a lock in a session that lives with its processes, at a node whose own
/// membership can end: the node has to be heard within the TTL.
fn bound() -> SessionMachine {
    let setup = Setup { session: Some((UNLIMITED, CONNECTION)), ..setup(CONNECTION, false) };
    let mut machine = SessionMachine::new(setup, at(0));
    machine.connected(at(0));
    let number = machine.acquire(at(0), ask("a", Wait::Forever));
    assert!(matches!(hello(&mut machine).0, Opening::New { ttl_ms: u32::MAX, .. }));
    welcome(&mut machine, at(1));
    reply(&mut machine, at(2), &Reply::Granted(number, Fence::new(1, 5)));
    assert!(matches!(machine.event(), Some(Event::Granted { .. })));
    machine
}

#[test]
fn a_node_that_hangs_does_not_hold_up_what_it_would_answer_at_once() {
    let setup = Setup { session: Some((UNLIMITED, CONNECTION)), ..setup(CONNECTION, false) };
    let mut machine = SessionMachine::new(setup, at(0));
    machine.connected(at(0));
    let held = machine.acquire(at(0), ask("a", Wait::Forever));
    hello(&mut machine);
    welcome_unlimited(&mut machine, at(1));
    let (lock, fence) = (Name::new("a").unwrap(), Fence::new(1, 5));
    reply(&mut machine, at(2), &Reply::Granted(held, fence));
    while machine.event().is_some() {}

    // The node hangs. It is asked for a sign of life before it is given up.
    let waits = machine.acquire(at(1000), ask("b", Wait::Forever));
    let tried = machine.acquire(at(2000), ask("c", Wait::No));
    let released = machine.release(at(2000), &lock, fence);
    let asked = machine.inspect(at(3000), &lock);
    requests(&mut machine);
    let refused = loop {
        let due = machine.next_due();
        assert!(due <= at(26_000), "patience lasts for 20 s, and the last question for 5 s");
        machine.tick(due);
        if let Some(event) = machine.event() {
            break event;
        }
    };
    assert!(matches!(refused, Event::Refused { number, .. } if number == tried), "{refused:?}");
    let sent = requests(&mut machine);
    assert!(sent.iter().any(|one| matches!(one, Request::Alive(_))), "{sent:?}");
    assert!(sent.contains(&Request::Withdraw(tried)), "{sent:?}");
    assert!(!sent.contains(&Request::Withdraw(waits)), "a request that waits goes on waiting");
    let Some(Event::Unknown { number, refusal }) = machine.event() else { panic!() };
    assert_eq!((number, refusal.code), (released, Code::Unavailable));
    let Some(Event::Refused { number, refusal }) = machine.event() else { panic!() };
    assert_eq!((number, refusal.text.as_str()), (asked, "no node answered within 23 s"));
    assert_eq!(machine.event(), None);
    assert!(!machine.must_close(), "the session would end");

    // The node goes on. A lock that nobody waits for any more is released.
    let (unwanted, wanted) = (Fence::new(1, 6), Fence::new(1, 7));
    reply(&mut machine, at(60_000), &Reply::Released(released, true));
    reply(&mut machine, at(60_000), &Reply::Granted(tried, unwanted));
    let c = Name::new("c").unwrap();
    let sent = requests(&mut machine);
    assert!(
        matches!(&sent[..], [.., Request::Release(_, lock, it)] if (lock, *it) == (&c, unwanted)),
        "{sent:?}"
    );
    assert_eq!(machine.event(), None);
    reply(&mut machine, at(60_001), &Reply::Granted(waits, wanted));
    assert!(matches!(machine.event(), Some(Event::Granted { number, .. }) if number == waits));
}

#[test]
fn a_client_that_was_stopped_asks_before_it_gives_its_lock_up() {
    let mut machine = bound();
    requests(&mut machine);
    // It is stopped, and wakes long after its TTL.
    machine.tick(at(60_000));
    assert_eq!(machine.event(), None, "the node may still hold the lock for it");
    let [Request::Alive(sign)] = requests(&mut machine)[..] else { panic!("no heartbeat") };
    reply(&mut machine, at(60_100), &Reply::Alive(sign));
    machine.tick(at(62_000));
    assert_eq!(machine.event(), None, "the node has answered");

    let mut machine = bound();
    machine.tick(at(60_000));
    machine.tick(at(60_999));
    assert_eq!(machine.event(), None);
    machine.tick(at(61_000));
    assert!(matches!(machine.event(), Some(Event::Lost { .. })), "a second without an answer");
}

#[test]
fn a_client_that_was_not_stopped_gives_its_lock_up_in_time() {
    let mut machine = bound();
    while machine.event().is_none() {
        let due = machine.next_due();
        assert!(due < at(10_000), "before the TTL is over");
        machine.tick(due);
    }
}

#[test]
fn a_grant_that_comes_after_a_stop_counts_when_the_node_has_answered() {
    let stopped = || {
        let mut machine = bound();
        let number = machine.acquire(at(3), ask("b", Wait::Forever));
        requests(&mut machine);
        // The grant has waited in the socket while the client was stopped.
        reply(&mut machine, at(60_000), &Reply::Granted(number, Fence::new(1, 6)));
        assert_eq!(machine.event(), None, "it may be lost by now");
        machine.tick(at(60_000));
        let [Request::Alive(sign)] = requests(&mut machine)[..] else { panic!("no heartbeat") };
        (machine, sign)
    };
    let granted =
        |event| matches!(event, Some(Event::Granted { fence, .. }) if fence == Fence::new(1, 6));

    let (mut machine, sign) = stopped();
    reply(&mut machine, at(60_100), &Reply::Alive(sign));
    assert!(granted(machine.event()), "the session is alive");
    assert_eq!(machine.event(), None);

    let (mut machine, _) = stopped();
    let (lock, why) = (Name::new("b").unwrap(), "the node has lost it".to_owned());
    reply(&mut machine, at(60_100), &Reply::Lost(lock, Fence::new(1, 6), why));
    assert!(granted(machine.event()), "each request has one answer");
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));

    let (mut machine, _) = stopped();
    machine.tick(at(61_000));
    assert!(
        matches!(machine.event(), Some(Event::Lost { fence, .. }) if fence == Fence::new(1, 5))
    );
    assert_eq!(machine.event(), None, "the request is made again in the next session");
}

#[test]
fn a_node_hears_of_a_loss_only_after_the_rest_of_the_ttl() {
    let mut machine = bound();
    let lost = machine.deadline().unwrap();
    while machine.event().is_none() {
        machine.tick(machine.next_due());
    }
    assert!(!machine.must_close(), "the node would free the lock at once");
    let rested = machine.next_due();
    assert_eq!(rested.since(lost), Duration::from_millis(500));
    machine.tick(rested);
    assert!(machine.must_close());
    machine.disconnected(rested);
    assert!(machine.wants_connection());
}

#[test]
fn a_session_that_lives_with_its_processes_is_resumed_as_one() {
    let mut machine = bound();
    machine.disconnected(at(100));
    machine.connected(at(200));
    assert!(matches!(hello(&mut machine).0, Opening::Resume { ttl_ms: u32::MAX, .. }));
}

/// A time service may slew a clock by 8.3 %, and that which is not slewed may be 0.1 % wrong.
#[test]
fn a_client_with_a_slewed_clock_knows_of_its_loss_before_any_node_ends_its_session() {
    for slew in [917, 1000, 1083] {
        let (machine, fence) = holding(CONNECTION);
        let lock = Name::new("a").unwrap();
        let mut clock = LeaseClock::faster();
        let start = clock.read(ClockReading::default());
        let lost = |ms: &u64| {
            let now = clock.read(ClockReading { boot: ms * 1000 * slew, raw: ms * 999_000 });
            let now = at(0).after(now.since(start));
            machine.grant_state(&lock, fence, now) == State::Lost
        };
        let lost = (0..20_000).find(lost).expect("nobody answers");
        // A node whose clock is 0.1 % too fast ends the session after 10 s of its own.
        assert!((8_000..9_990).contains(&lost), "{slew}: lost after {lost} ms");
    }
}
