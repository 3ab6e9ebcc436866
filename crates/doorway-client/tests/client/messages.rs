//! What a machine sends and when, message by message.

use std::time::Duration;

use doorway_client::machine::{Event, SessionMachine, Setup, State};
use doorway_client::{Ask, ClientInfo, Code, Fence, Life, Mode, Moment, Name, Refusal, Wait};
use doorway_protocol::{
    Claims, Frames, Greeting, Hello, Opening, Reply, Request, Scope, Secret, SessionId, Welcome,
    put,
};

const SECOND: u64 = 1_000_000_000;

/// The moment this many milliseconds after the beginning of a test.
pub(crate) fn at(ms: u64) -> Moment {
    Moment(100 * SECOND + ms * 1_000_000)
}

pub(crate) fn machine(life: Life) -> SessionMachine {
    SessionMachine::new(setup(life, false), at(0))
}

pub(crate) fn setup(life: Life, network: bool) -> Setup {
    let session = Some((Duration::from_secs(10), life));
    let patience = Duration::from_secs(20);
    let (who, token, keep, nodes) = (ClientInfo::default(), None, false, 1);
    Setup { who, token, session, patience, network, keep, nodes }
}

pub(crate) const CONNECTION: Life = Life::Connection { inherited: false };

pub(crate) fn ask(lock: &str, wait: Wait) -> Ask {
    let lock = Name::new(lock).expect("a name");
    Ask { lock, mode: Mode::Exclusive, permits: None, wait }
}

/// The requests that the machine sends, after its greeting.
pub(crate) fn requests(machine: &mut SessionMachine) -> Vec<Request> {
    let mut frames = Frames::default();
    frames.feed(&std::mem::take(machine.outgoing()));
    let take = || frames.take::<Request>().expect("requests");
    std::iter::from_fn(take).collect()
}

/// The greeting that the machine sends, with all its claims, and the requests behind it.
pub(crate) fn hello(machine: &mut SessionMachine) -> (Opening, Vec<Claims>, Vec<Request>) {
    let mut frames = Frames::default();
    frames.feed(&std::mem::take(machine.outgoing()));
    assert!(frames.magic().expect("magic"));
    let hello = frames.take::<Hello>().expect("a greeting").expect("a whole frame");
    let mut more = matches!(hello.opening, Opening::Resume { more: true, .. });
    let mut pages = vec![];
    while more {
        let page = frames.take::<Claims>().expect("claims").expect("a whole frame");
        more = page.more;
        pages.push(page);
    }
    let take = || frames.take::<Request>().expect("requests");
    (hello.opening, pages, std::iter::from_fn(take).collect())
}

pub(crate) fn welcome(machine: &mut SessionMachine, now: Moment) {
    welcome_as(machine, now, Some((SessionId(7), Secret([1; 16]))));
}

pub(crate) fn welcome_as(
    machine: &mut SessionMachine,
    now: Moment,
    session: Option<(SessionId, Secret)>,
) {
    welcome_for(machine, now, session, 10_000);
}

/// The node welcomes the client to a session that lives as long as its processes.
pub(crate) fn welcome_unlimited(machine: &mut SessionMachine, now: Moment) {
    welcome_for(machine, now, Some((SessionId(7), Secret([1; 16]))), u32::MAX);
}

fn welcome_for(
    machine: &mut SessionMachine,
    now: Moment,
    session: Option<(SessionId, Secret)>,
    ttl_ms: u32,
) {
    let welcome = Welcome {
        version: 1,
        node: "one".to_owned(),
        scope: Scope::User,
        session,
        ttl_ms,
        lost: vec![],
        directory: None,
    };
    let mut bytes = vec![];
    put(&Greeting::Ok(welcome), &mut bytes);
    machine.receive(now, &bytes);
    assert!(matches!(machine.event(), Some(Event::Welcome { .. })));
}

pub(crate) fn reply(machine: &mut SessionMachine, now: Moment, reply: &Reply) {
    let mut bytes = vec![];
    put(reply, &mut bytes);
    machine.receive(now, &bytes);
}

/// A machine that was welcomed at once and holds the lock `a`.
pub(crate) fn holding(life: Life) -> (SessionMachine, Fence) {
    holding_over(life, false)
}

pub(crate) fn holding_over(life: Life, network: bool) -> (SessionMachine, Fence) {
    let mut machine = SessionMachine::new(setup(life, network), at(0));
    machine.connected(at(0));
    let number = machine.acquire(at(0), ask("a", Wait::Forever));
    let (_, _, sent) = hello(&mut machine);
    let acquire = [Request::Acquire(number, ask("a", Wait::Forever))];
    // A session that outlives its connection is granted nothing before its client knows of it.
    let waits = !matches!(life, Life::Connection { .. });
    assert_eq!(sent, if waits { &[] } else { &acquire[..] });
    welcome(&mut machine, at(1));
    assert_eq!(requests(&mut machine), if waits { &acquire[..] } else { &[] });
    let fence = Fence::new(1, 5);
    reply(&mut machine, at(2), &Reply::Granted(number, fence));
    assert!(matches!(machine.event(), Some(Event::Granted { .. })));
    (machine, fence)
}

#[test]
fn the_lease_counts_from_when_the_answered_message_was_sent() {
    let (mut machine, fence) = holding(CONNECTION);
    let lock = Name::new("a").unwrap();
    assert_eq!(machine.next_due(), at(2500), "a heartbeat every quarter of the TTL");
    machine.tick(at(2499));
    assert!(machine.outgoing().is_empty());
    machine.tick(at(2500));
    let [Request::Alive(number)] = requests(&mut machine)[..] else { panic!("no heartbeat") };
    assert_eq!(machine.next_due(), at(5000), "the next heartbeat, if there is no answer");
    assert_eq!(machine.grant_state(&lock, fence, at(4999)), State::Held);
    assert_eq!(machine.grant_state(&lock, fence, at(5000)), State::Unsure);
    assert_eq!(machine.grant_state(&lock, fence, at(9499)), State::Unsure);
    assert_eq!(machine.grant_state(&lock, fence, at(9500)), State::Lost);
    reply(&mut machine, at(9000), &Reply::Alive(number));
    assert_eq!(machine.event(), None, "answers to heartbeats are not reported");
    assert_eq!(
        machine.deadline(),
        Some(at(12_000)),
        "counted from the heartbeat, not from the answer"
    );
    machine.tick(at(12_000));
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));
    assert_eq!(machine.grant_state(&lock, fence, at(0)), State::Lost, "it stays lost");
    assert!(!machine.must_close(), "the rest of the TTL passes first");
    machine.tick(at(12_500));
    assert!(machine.must_close());
    machine.disconnected(at(12_500));
    machine.connected(at(12_501));
    assert!(matches!(hello(&mut machine).0, Opening::New { .. }), "a lost session is not resumed");
}

#[test]
fn a_client_that_reconnects_claims_everything_it_has() {
    let (mut machine, fence) = holding(CONNECTION);
    let waits = machine.acquire(at(10), ask("b", Wait::Ms(1000)));
    let release = machine.release(at(10), &Name::new("a").unwrap(), fence);
    let again = machine.acquire(at(20), ask("c", Wait::Forever));
    reply(&mut machine, at(21), &Reply::Granted(again, Fence::new(1, 6)));
    machine.disconnected(at(100));
    assert!(machine.wants_connection());
    machine.connected(at(200));
    let (opening, pages, sent) = hello(&mut machine);
    let Opening::Resume { session, held, waiting, more, .. } = opening else {
        panic!("a new session")
    };
    assert_eq!((session, waiting, more), (SessionId(7), vec![waits], false));
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].lock.as_str(), held[0].request), ("c", again));
    assert!(pages.is_empty() && sent.is_empty(), "the requests follow the welcome");
    welcome_again(&mut machine, at(300));
    assert_eq!(
        machine.deadline(),
        Some(at(9700)),
        "counted from the greeting, not from the welcome"
    );
    let sent = requests(&mut machine);
    let left = Request::Acquire(waits, ask("b", Wait::Ms(710)));
    assert_eq!(sent[0], left, "with the time that is left");
    assert_eq!(sent[1], Request::Release(release, Name::new("a").unwrap(), fence));
    assert_eq!(sent.len(), 2);
    // The node received the release before, so that it frees nothing now does not mean a loss.
    reply(&mut machine, at(301), &Reply::Released(release, false));
    assert_eq!(machine.event(), Some(Event::Released { number: release, held: true }));
}

fn welcome_again(machine: &mut SessionMachine, now: Moment) {
    while machine.event().is_some() {}
    welcome(machine, now);
}

#[test]
fn many_claims_are_sent_in_pages() {
    let (mut machine, _) = holding(CONNECTION);
    for index in 0..2500 {
        let number = machine.acquire(at(5), ask(&format!("lock {index}"), Wait::Forever));
        reply(&mut machine, at(5), &Reply::Granted(number, Fence::new(1, 100 + index)));
    }
    for index in 0..1500 {
        machine.acquire(at(5), ask(&format!("lock {index}"), Wait::Forever));
    }
    machine.disconnected(at(6));
    machine.connected(at(7));
    let (opening, pages, _) = hello(&mut machine);
    let Opening::Resume { held, waiting, .. } = opening else { panic!("a new session") };
    assert_eq!(pages.len(), 2);
    let all: usize = held.len() + pages.iter().map(|page| page.held.len()).sum::<usize>();
    let waits: usize = waiting.len() + pages.iter().map(|page| page.waiting.len()).sum::<usize>();
    assert_eq!((all, waits), (2501, 1500));
}

#[test]
fn a_session_that_the_node_does_not_know_is_lost() {
    for (code, lost, closed) in [
        (Code::Gone, true, false),
        (Code::Forbidden, true, true),
        (Code::Unavailable, false, false),
    ] {
        let (mut machine, _) = holding(CONNECTION);
        machine.disconnected(at(100));
        machine.connected(at(200));
        let refusal = Refusal { code, text: "why".to_owned() };
        let mut bytes = vec![];
        put(&Greeting::Err(refusal), &mut bytes);
        machine.receive(at(201), &bytes);
        let events: Vec<_> = std::iter::from_fn(|| machine.event()).collect();
        assert_eq!(events.iter().any(|it| matches!(it, Event::Lost { .. })), lost, "{code:?}");
        assert_eq!(events.iter().any(|it| matches!(it, Event::Closed(_))), closed, "{code:?}");
        assert!(machine.must_close());
        assert_eq!(machine.state(at(202)) == State::Lost, lost);
    }
}

#[test]
fn a_server_that_is_not_a_node_is_recognized() {
    let mut machine = machine(CONNECTION);
    machine.connected(at(0));
    let number = machine.status(at(0));
    machine.receive(at(1), b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let Some(Event::Refused { number: refused, refusal }) = machine.event() else { panic!() };
    assert_eq!((refused, refusal.code), (number, Code::Invalid));
    assert!(matches!(machine.event(), Some(Event::Closed(_))));
    assert!(machine.must_close());
}

#[test]
fn a_grant_of_a_withdrawn_request_is_released() {
    let (mut machine, _) = holding(CONNECTION);
    let number = machine.acquire(at(10), ask("b", Wait::Forever));
    machine.withdraw(number);
    machine.withdraw(number);
    let sent = requests(&mut machine);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1], Request::Withdraw(number));
    reply(&mut machine, at(11), &Reply::Granted(number, Fence::new(1, 9)));
    let sent = requests(&mut machine);
    let [Request::Release(release, name, fence)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((name.as_str(), *fence), ("b", Fence::new(1, 9)));
    reply(&mut machine, at(12), &Reply::Released(*release, true));
    assert_eq!(machine.event(), None, "none of this is reported");
    assert_eq!(machine.held().count(), 1);
}

#[test]
fn sessions_without_a_connection_send_heartbeats_only_while_they_wait() {
    let (machine, _) = holding(Life::Process { pid: 1 });
    assert_eq!((machine.deadline(), machine.next_due()), (None, Moment::NEVER));
    assert_eq!(machine.state(at(1_000_000)), State::Held);

    let (mut machine, _) = holding(Life::Lease);
    assert_eq!(machine.next_due(), at(9500), "it expires unless it is renewed");
    machine.acquire(at(100), ask("b", Wait::Forever));
    assert_eq!(machine.next_due(), at(2500));
    let number = machine.alive(at(200));
    reply(&mut machine, at(300), &Reply::Alive(number));
    assert!(matches!(machine.event(), Some(Event::Answer { .. })));
    assert_eq!(machine.deadline(), Some(at(9700)));
}

#[test]
fn nothing_happens_after_goodbye() {
    let (mut machine, fence) = holding(CONNECTION);
    machine.bye();
    assert_eq!(requests(&mut machine), [Request::Bye]);
    assert!(machine.must_close() && !machine.wants_connection());
    machine.disconnected(at(10));
    assert!(!machine.wants_connection());
    assert_eq!(machine.grant_state(&Name::new("a").unwrap(), fence, at(10)), State::Lost);
    assert_eq!((machine.next_due(), machine.event()), (Moment::NEVER, None));
}

#[test]
fn replies_about_unknown_requests_and_grants_are_handled() {
    let (mut machine, fence) = holding(CONNECTION);
    reply(&mut machine, at(3), &Reply::Granted(1, fence));
    assert!(machine.outgoing().is_empty(), "the machine holds this grant already");
    reply(&mut machine, at(3), &Reply::Granted(99, Fence::new(1, 99)));
    assert_eq!(
        requests(&mut machine),
        [Request::Withdraw(99)],
        "otherwise nobody would release it"
    );
    reply(&mut machine, at(3), &Reply::Lost(Name::new("b").unwrap(), fence, String::new()));
    assert_eq!((machine.event(), machine.held().count()), (None, 1));
    reply(&mut machine, at(3), &Reply::Lost(Name::new("a").unwrap(), fence, String::new()));
    assert!(matches!(machine.event(), Some(Event::Lost { .. })));
    reply(&mut machine, at(3), &Reply::Stopping(7));
    assert_eq!(machine.event(), Some(Event::Stopping { within: Duration::from_millis(7) }));
}

#[test]
fn garbage_ends_the_connection_and_sessions_that_depend_on_it() {
    for (life, network, held) in [
        (CONNECTION, false, false),
        (CONNECTION, true, true),
        (Life::Process { pid: 1 }, false, true),
    ] {
        let (mut machine, fence) = holding_over(life, network);
        machine.receive(at(4), &[255; 8]);
        assert!(machine.must_close());
        let state = machine.grant_state(&Name::new("a").unwrap(), fence, at(4));
        assert_eq!(state == State::Held, held, "{life:?} over a network: {network}");
        assert_eq!(matches!(machine.event(), Some(Event::Lost { .. })), !held);
        machine.disconnected(at(4));
        machine.connected(at(5));
        let (opening, ..) = hello(&mut machine);
        assert_eq!(matches!(opening, Opening::Resume { .. }), held);
    }
}

#[test]
fn a_welcome_that_comes_too_late_opens_no_session() {
    let mut machine = machine(CONNECTION);
    machine.connected(at(0));
    let number = machine.acquire(at(0), ask("a", Wait::Forever));
    let mut bytes = vec![];
    let session = Some((SessionId(7), Secret([1; 16])));
    let (node, scope, lost) = ("one".to_owned(), Scope::User, vec![]);
    let directory = None;
    let welcome = Welcome { version: 1, node, scope, session, ttl_ms: 10_000, lost, directory };
    put(&Greeting::Ok(welcome), &mut bytes);
    put(&Reply::Granted(number, Fence::new(1, 5)), &mut bytes);
    machine.receive(at(9600), &bytes);
    let events: Vec<_> = std::iter::from_fn(|| machine.event()).collect();
    assert!(matches!(events[..], [Event::Welcome { .. }]), "{events:?}");
    assert!(machine.must_close());
    machine.disconnected(at(9600));
    machine.connected(at(9700));
    let (opening, _, sent) = hello(&mut machine);
    assert!(matches!(opening, Opening::New { .. }));
    assert_eq!(sent, [Request::Acquire(number, ask("a", Wait::Forever))], "it is requested again");
}

#[test]
fn a_request_withdrawn_during_a_reconnect_does_not_wait() {
    let (mut machine, _) = holding(CONNECTION);
    let before = machine.acquire(at(10), ask("b", Wait::Forever));
    let during = machine.acquire(at(10), ask("c", Wait::Forever));
    machine.withdraw(before);
    machine.disconnected(at(20));
    machine.connected(at(30));
    let (opening, ..) = hello(&mut machine);
    let Opening::Resume { waiting, .. } = opening else { panic!("a new session") };
    assert_eq!(waiting, [during], "the other request was withdrawn");
    machine.withdraw(during);
    welcome(&mut machine, at(40));
    assert_eq!(requests(&mut machine), [Request::Withdraw(during)]);
}
