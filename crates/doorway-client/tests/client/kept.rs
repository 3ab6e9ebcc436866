//! Locks that a client keeps after it has left them.

use std::time::Duration;

use doorway_client::machine::{Event, SessionMachine, Setup, State, UNLIMITED};
use doorway_client::{Fence, Moment, Name, Wait};
use doorway_protocol::{
    Greeting, Mode, Opening, Reply, Request, Scope, Secret, SessionId, Welcome, put,
};

use super::messages::{CONNECTION, ask, at, hello, reply, requests, setup};

/// How many numbers the node reserves after the fence of a grant.
const MORE: u32 = 3;

fn lock() -> Name {
    Name::new("a").expect("a name")
}

fn fence(clock: u64) -> Fence {
    Fence::new(1, clock)
}

fn keeping() -> Setup {
    Setup { keep: true, ..setup(CONNECTION, true) }
}

/// A machine that a node of this version has welcomed.
fn welcomed(setup: Setup, version: u16) -> SessionMachine {
    let mut machine = SessionMachine::new(setup, at(0));
    machine.connected(at(0));
    hello(&mut machine);
    welcome(&mut machine, version, at(0));
    machine
}

fn welcome(machine: &mut SessionMachine, version: u16, now: Moment) {
    let (node, scope, session) = ("one".to_owned(), Scope::User, (SessionId(7), Secret([1; 16])));
    let (ttl_ms, lost, directory) = (10_000, vec![], None);
    let session = Some(session);
    let welcome = Welcome { version, node, scope, session, ttl_ms, lost, directory };
    let mut bytes = vec![];
    put(&Greeting::Ok(welcome), &mut bytes);
    machine.receive(now, &bytes);
    assert!(matches!(machine.event(), Some(Event::Welcome { .. })));
}

/// A machine that is inside the lock `a` with a fence of clock 5, and may keep it.
fn inside() -> SessionMachine {
    let mut machine = welcomed(keeping(), 5);
    let number = machine.acquire(at(0), ask("a", Wait::Forever));
    assert_eq!(requests(&mut machine), [Request::Keep(number, ask("a", Wait::Forever))]);
    reply(&mut machine, at(1), &Reply::Kept { number, fence: fence(5), more: MORE });
    assert_eq!(machine.event(), Some(Event::Granted { number, lock: lock(), fence: fence(5) }));
    machine
}

/// A machine that has left the lock `a` and keeps it.
fn outside() -> SessionMachine {
    let mut machine = inside();
    let number = machine.release(at(2), &lock(), fence(5));
    assert_eq!(machine.event(), Some(Event::Released { number, held: true }));
    assert_eq!((requests(&mut machine), machine.held().count()), (vec![], 0));
    machine
}

/// Ask for the lock `a`. Returns the fence if the machine enters without the node, and otherwise
/// what it sends.
fn enter(machine: &mut SessionMachine, now: Moment) -> Result<Fence, Vec<Request>> {
    let asked = machine.acquire(now, ask("a", Wait::Forever));
    match machine.event() {
        Some(Event::Granted { number, fence, .. }) => {
            assert_eq!((number, requests(machine)), (asked, vec![]));
            Ok(fence)
        }
        None => Err(requests(machine)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn entering_again_sends_nothing_until_the_range_is_used_up() {
    let mut machine = outside();
    for clock in 6..=8 {
        assert_eq!(enter(&mut machine, at(10)), Ok(fence(clock)));
        assert_eq!(machine.grant_state(&lock(), fence(clock), at(10)), State::Held);
        assert_eq!(machine.grant_state(&lock(), fence(5), at(10)), State::Lost);
        assert_eq!(machine.first_fence(&lock(), fence(clock)), Some(fence(5)));
        let number = machine.release(at(10), &lock(), fence(clock));
        if clock < 8 {
            assert_eq!(machine.event(), Some(Event::Released { number, held: true }));
            assert_eq!(requests(&mut machine), []);
        } else {
            let release = Request::Release(number, lock(), fence(5));
            assert_eq!(requests(&mut machine), [release], "by the fence that the node knows");
            assert_eq!(machine.event(), None);
        }
    }
    let Err(sent) = enter(&mut machine, at(10)) else { panic!("there is no number left") };
    assert!(matches!(sent[..], [Request::Keep(..)]), "{sent:?}");
}

#[test]
fn a_wanted_lock_is_given_back_at_once_outside_and_at_the_release_inside() {
    let mut machine = outside();
    reply(&mut machine, at(3), &Reply::Wanted(lock(), fence(4)));
    assert_eq!(requests(&mut machine), [], "that was another grant");
    reply(&mut machine, at(3), &Reply::Wanted(lock(), fence(5)));
    let sent = requests(&mut machine);
    let [Request::Release(number, _, first)] = sent[..] else { panic!("{sent:?}") };
    assert_eq!(first, fence(5));
    reply(&mut machine, at(4), &Reply::Released(number, true));
    assert_eq!(machine.event(), None, "the program has left it before");
    assert!(enter(&mut machine, at(4)).is_err());

    let mut machine = outside();
    assert_eq!(enter(&mut machine, at(3)), Ok(fence(6)));
    reply(&mut machine, at(3), &Reply::Wanted(lock(), fence(5)));
    assert_eq!(requests(&mut machine), [Request::InUse(lock(), fence(5))]);
    assert_eq!(machine.grant_state(&lock(), fence(6), at(3)), State::Held, "it is still inside");
    let number = machine.release(at(4), &lock(), fence(6));
    assert_eq!(requests(&mut machine), [Request::Release(number, lock(), fence(5))]);
    reply(&mut machine, at(5), &Reply::Released(number, true));
    assert_eq!(machine.event(), Some(Event::Released { number, held: true }));
}

#[test]
fn releasing_the_first_fence_twice_does_not_release_a_later_entry() {
    let twice = |machine: &mut SessionMachine| {
        let number = machine.release(at(3), &lock(), fence(5));
        assert_eq!(machine.event(), Some(Event::Released { number, held: false }));
        assert_eq!(requests(machine), [], "the node knows the lock by this fence");
    };
    let mut machine = outside();
    twice(&mut machine);
    assert_eq!(enter(&mut machine, at(3)), Ok(fence(6)));
    twice(&mut machine);
    reply(&mut machine, at(3), &Reply::Wanted(lock(), fence(5)));
    assert_eq!(requests(&mut machine), [Request::InUse(lock(), fence(5))]);
    twice(&mut machine);
    assert_eq!(machine.grant_state(&lock(), fence(6), at(3)), State::Held);
}

#[test]
fn entering_again_needs_an_answer_of_the_first_half_of_the_ttl() {
    let mut machine = outside();
    assert_eq!(enter(&mut machine, at(4999)), Ok(fence(6)));
    let number = machine.release(at(4999), &lock(), fence(6));
    assert_eq!(machine.event(), Some(Event::Released { number, held: true }));
    let Err(sent) = enter(&mut machine, at(5000)) else { panic!("the TTL counts from sending") };
    let [Request::Release(_, _, first), Request::Keep(..)] = sent[..] else { panic!("{sent:?}") };
    assert_eq!(first, fence(5), "it is given back before it is asked for again");

    let mut machine = outside();
    machine.tick(at(2500));
    let [Request::Alive(number)] = requests(&mut machine)[..] else { panic!("no heartbeat") };
    reply(&mut machine, at(4000), &Reply::Alive(number));
    assert_eq!(enter(&mut machine, at(7499)), Ok(fence(6)), "heartbeats keep it");
}

#[test]
fn nothing_is_kept_across_connections() {
    let mut machine = outside();
    machine.disconnected(at(3));
    assert_eq!(machine.event(), None, "nothing is lost");
    machine.connected(at(4));
    let (Opening::Resume { held, waiting, .. }, _, sent) = hello(&mut machine) else { panic!() };
    assert_eq!((held.len(), waiting.len(), sent.len()), (0, 0, 0), "so the node releases it");
    welcome(&mut machine, 5, at(4));
    assert!(enter(&mut machine, at(5)).is_err());

    let mut machine = outside();
    assert_eq!(enter(&mut machine, at(3)), Ok(fence(6)));
    machine.disconnected(at(3));
    machine.connected(at(4));
    let (Opening::Resume { held, .. }, ..) = hello(&mut machine) else { panic!() };
    let [claim] = &held[..] else { panic!("{held:?}") };
    assert_eq!(claim.fence, fence(5), "by the fence that the node knows");
    welcome(&mut machine, 5, at(4));
    assert_eq!(machine.grant_state(&lock(), fence(6), at(5)), State::Held);
    machine.release(at(5), &lock(), fence(6));
    assert!(matches!(requests(&mut machine)[..], [Request::Release(..)]));
}

#[test]
fn a_loss_is_told_by_the_fence_that_the_program_knows_and_only_inside() {
    let lost = Reply::Lost(lock(), fence(5), "broken".to_owned());
    let mut machine = outside();
    reply(&mut machine, at(3), &lost);
    assert_eq!(machine.event(), None);
    assert!(enter(&mut machine, at(4)).is_err());

    let mut machine = outside();
    assert_eq!(enter(&mut machine, at(3)), Ok(fence(6)));
    reply(&mut machine, at(4), &lost);
    let Some(Event::Lost { fence: told, .. }) = machine.event() else { panic!("not told") };
    assert_eq!(told, fence(6));
    assert_eq!(machine.grant_state(&lock(), fence(6), at(4)), State::Lost);

    // The loss crosses the release.
    let mut machine = inside();
    reply(&mut machine, at(3), &Reply::Wanted(lock(), fence(5)));
    machine.release(at(3), &lock(), fence(5));
    reply(&mut machine, at(4), &lost);
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));
}

#[test]
fn a_node_that_stops_gets_everything_back() {
    let mut machine = outside();
    reply(&mut machine, at(3), &Reply::Stopping(1000));
    assert!(matches!(requests(&mut machine)[..], [Request::Release(..)]));
    assert!(matches!(machine.event(), Some(Event::Stopping { .. })));
    let mut machine = inside();
    reply(&mut machine, at(3), &Reply::Stopping(1000));
    assert_eq!(requests(&mut machine), []);
    machine.release(at(3), &lock(), fence(5));
    assert!(matches!(requests(&mut machine)[..], [Request::Release(..)]));
}

#[test]
fn the_lock_that_was_not_used_for_the_longest_time_is_given_back_first() {
    let mut machine = welcomed(keeping(), 5);
    let mut given = vec![];
    for index in 0..66 {
        let name = format!("lock {index}");
        let number = machine.acquire(at(0), ask(&name, Wait::Forever));
        given.extend(requests(&mut machine));
        let granted = Reply::Kept { number, fence: fence(10 * index + 1), more: MORE };
        reply(&mut machine, at(1), &granted);
        machine.release(at(1), &Name::new(&name).unwrap(), fence(10 * index + 1));
        if index == 63 {
            assert_eq!(requests(&mut machine), []);
            machine.acquire(at(1), ask("lock 0", Wait::Forever));
            machine.release(at(1), &Name::new("lock 0").unwrap(), fence(2));
        }
    }
    given.extend(requests(&mut machine));
    let given = given.iter().filter_map(|request| match request {
        Request::Release(_, lock, _) => Some(lock.as_str()),
        _ => None,
    });
    assert_eq!(given.collect::<Vec<_>>(), ["lock 1", "lock 2"]);
}

#[test]
fn only_exclusive_locks_are_kept_and_only_by_nodes_that_know_how() {
    let mut machine = welcomed(keeping(), 4);
    machine.acquire(at(0), ask("a", Wait::Forever));
    assert!(matches!(requests(&mut machine)[..], [Request::Acquire(..)]), "an older node");

    let mut machine = welcomed(keeping(), 5);
    machine.acquire(at(0), doorway_protocol::Ask { mode: Mode::Shared, ..ask("a", Wait::No) });
    machine.acquire(at(0), doorway_protocol::Ask { permits: Some(2), ..ask("b", Wait::No) });
    let sent = requests(&mut machine);
    assert!(matches!(sent[..], [Request::Acquire(..), Request::Acquire(..)]), "{sent:?}");

    // The node grants the lock and does not let the client keep it.
    let mut machine = welcomed(keeping(), 5);
    let number = machine.acquire(at(0), ask("a", Wait::Forever));
    requests(&mut machine);
    reply(&mut machine, at(1), &Reply::Granted(number, fence(5)));
    machine.release(at(1), &lock(), fence(5));
    assert!(matches!(requests(&mut machine)[..], [Request::Release(..)]));
}

#[test]
fn a_session_that_keeps_locks_has_a_ttl_on_a_unix_socket_as_well() {
    let session = Some((UNLIMITED, CONNECTION));
    let mut machine = SessionMachine::new(Setup { session, network: false, ..keeping() }, at(0));
    machine.connected(at(0));
    let (Opening::New { ttl_ms, .. }, ..) = hello(&mut machine) else { panic!() };
    assert_eq!(ttl_ms, 10_000);
    welcome(&mut machine, 5, at(0));
    assert_eq!(machine.ttl(), Some(Duration::from_secs(10)));
    assert_eq!(machine.take_holder(), None, "it does not live with its processes");
}

#[test]
fn a_kept_grant_for_a_request_that_was_withdrawn_is_released() {
    let mut machine = welcomed(keeping(), 5);
    let number = machine.acquire(at(0), ask("a", Wait::Forever));
    machine.withdraw(number);
    requests(&mut machine);
    reply(&mut machine, at(1), &Reply::Kept { number, fence: fence(5), more: MORE });
    assert!(matches!(requests(&mut machine)[..], [Request::Release(..)]));
    assert!(enter(&mut machine, at(2)).is_err());
}
