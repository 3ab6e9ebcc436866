//! Malicious and faulty clients.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use doorway_daemon::settings::{Limits, Settings, default_limits};
use doorway_protocol::{
    Claims, ClientInfo, Code, Greeting, Hello, Life, MAGIC, Opening, Reply, Request, VERSIONS,
    Wait, put,
};

use super::client::{CONNECTION, claim, resume};
use crate::common::settings::settings;
use crate::common::{PATIENCE, Place};
use crate::server::{Server, connect};

fn limited(limits: Limits) -> Settings {
    Settings { limits, ..settings() }
}

#[test]
fn exceeding_a_limit_is_an_error_that_names_it_and_does_not_affect_others() {
    let limits = Limits { grants: 3, waiting: 1, sessions: 2, connections: 3, ..default_limits() };
    let server = Server::start(&limited(limits));
    let (mut one, mut other) = (server.session(), server.session());
    let mut third = server.client();
    let refused = third.hello(Opening::New { ttl_ms: 1000, life: CONNECTION }).unwrap_err();
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.text.contains("limits.sessions"), "{refused}");
    assert_eq!(third.frame::<Reply>(), None);
    server.until("it is gone", |service| service.connections() == 2);
    let mut third = server.client();
    third.visit();
    let refused = server.client().hello(Opening::Visit).unwrap_err();
    assert!(refused.text.contains("limits.connections"), "{refused}");
    one.acquire("a");
    one.acquire("b");
    let fence = other.acquire("c");
    let waits = one.ask("c", Wait::Forever);
    let refused = one.ask("d", Wait::Forever);
    let refused = one.refused(refused);
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.text.contains("limits.grants"), "{refused}");
    other.ask("a", Wait::Forever);
    let number = other.ask("b", Wait::Forever);
    let refused = other.refused(number);
    assert!(refused.text.contains("limits.waiting"), "{refused}");
    assert!(other.release("c", fence));
    one.granted(waits);
}

/// Grants from before a crash are restored as far as the settings allow them now.
/// What was granted before the node was started is kept whatever the limits are now, and counts.
#[test]
fn restored_sessions_keep_their_grants_and_count_against_the_limits() {
    let place = Place::new();
    let limited = |limits| {
        let mut settings = limited(limits);
        settings.node.data = Some(place.path().to_owned());
        settings
    };
    let server = Server::start(&limited(default_limits()));
    let mut holder = server.client();
    let welcome = holder.open(10_000, CONNECTION);
    let fences = ["a", "b"].map(|lock| holder.acquire(lock));
    server.crash();
    let server = Server::start(&limited(Limits { sessions: 1, grants: 1, ..default_limits() }));
    let opening = Opening::New { ttl_ms: 10_000, life: CONNECTION };
    assert_eq!(server.client().hello(opening).unwrap_err().code, Code::Busy);
    let mut holder = server.client();
    let claims = vec![claim("a", fences[0]), claim("b", fences[1])];
    assert_eq!(holder.hello(resume(&welcome, claims)).unwrap().lost, []);
    let number = holder.ask("c", Wait::No);
    assert_eq!(holder.refused(number).code, Code::Busy);
    assert!(holder.release("a", fences[0]));
}

#[test]
fn claims_above_the_limits_are_refused() {
    let limits = Limits { grants: 1500, waiting: 10, ..default_limits() };
    let server = Server::start(&limited(limits));
    let welcome = server.client().open(10_000, CONNECTION);
    let opening = |count: usize, others| {
        let mut opening = resume(&welcome, Vec::new());
        if let Opening::Resume { waiting, more, .. } = &mut opening {
            *waiting = (0..count as u64).collect();
            *more = others;
        }
        opening
    };
    let refused = server.client().hello(opening(Claims::MAX + 1, false)).unwrap_err();
    assert_eq!(refused.code, Code::Invalid, "{refused}");
    for count in [Claims::MAX, 0] {
        let mut client = server.client();
        let page = Claims { waiting: (0..count as u64).collect(), ..Claims::default() };
        let page = Claims { more: true, ..page };
        let mut bytes = Vec::new();
        let pages = if count == 0 { 3000 } else { 3 };
        for _ in 0..pages {
            put(&page, &mut bytes);
        }
        client.say_hello(opening(Claims::MAX, true));
        // The service may close the connection before it has read all of them.
        let _ = client.stream.write_all(&bytes);
        let refused = client.frame::<Greeting>().expect("a greeting").unwrap_err();
        assert_eq!(refused.code, Code::Invalid, "{refused}");
    }
}

#[test]
fn times_are_kept_within_bounds() {
    let limits = Limits { ttl: Duration::from_secs(7), ..default_limits() };
    let server = Server::start(&limited(limits));
    assert_eq!(server.client().open(u32::MAX - 1, CONNECTION).ttl_ms, 7000);
    // The node sees the process of this client, whose session has no limit if it asks for none.
    assert_eq!(server.client().open(u32::MAX, CONNECTION).ttl_ms, u32::MAX);
    assert_eq!(server.client().open(0, CONNECTION).ttl_ms, 500);
}

#[test]
fn incompatible_versions_are_reported() {
    let server = Server::start(&settings());
    let mut stream = connect(&server.name).unwrap();
    let versions = (VERSIONS.1 + 1, VERSIONS.1 + 2);
    let hello =
        Hello { versions, who: ClientInfo::default(), token: None, opening: Opening::Visit };
    let mut bytes = MAGIC.to_vec();
    put(&hello, &mut bytes);
    stream.write_all(&bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("update the older one"));
}

/// A thousand connections that send garbage of all kinds.
#[test]
fn a_flood_of_garbage_does_not_affect_others() {
    let server = Server::start(&settings());
    let mut client = server.session();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..1000 {
        let mut garbage: Vec<u8> = (0..200)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random as u8
            })
            .collect();
        match round % 4 {
            0 => garbage[0] = b'G',
            1 => garbage[..8].copy_from_slice(&MAGIC),
            2 => {
                garbage[..8].copy_from_slice(&MAGIC);
                garbage[8..12].copy_from_slice(&50_u32.to_le_bytes());
            }
            _ => {
                // The length of a frame that is allowed, but never sent.
                garbage[..8].copy_from_slice(&MAGIC);
                garbage[8..12].copy_from_slice(&(1_u32 << 17).to_le_bytes());
            }
        }
        let mut stream = connect(&server.name).unwrap();
        let _ = stream.write_all(&garbage); // It may have been closed already.
        drop(stream);
        if round % 100 == 0 {
            let fence = client.acquire("a");
            assert!(client.release("a", fence));
        }
    }
    server.until("all are gone", |service| service.connections() == 1);
    assert_eq!(server.service.sessions(), 1);
}

#[test]
fn garbage_within_a_session_ends_it() {
    let server = Server::start(&settings());
    let mut client = server.session();
    client.acquire("a");
    client.stream.write_all(&[255; 64]).unwrap();
    assert_eq!(client.frame::<Reply>(), None);
    server.until("it is over", |service| service.held() == 0 && service.sessions() == 0);
}

/// If a client sends requests and reads no replies, the node stops reading too, and the session
/// ends as if it sent no heartbeats.
#[test]
fn a_client_that_does_not_read_is_ended_at_its_timeout() {
    let server = Server::start(&settings());
    let mut slow = server.client();
    slow.open(500, CONNECTION);
    slow.acquire("a");
    let mut bytes = Vec::new();
    (0..2000).for_each(|number| _ = put(&Request::Status(number), &mut bytes));
    slow.stream.set_nonblocking(true).unwrap();
    while let Ok(1..) = slow.stream.write(&bytes) {}
    server.until("its lock is free", |service| service.held() == 0);
    server.until("its connection is closed", |service| service.connections() == 0);
}

/// Notifications come without a request, so a client that reads none of them is disconnected.
#[test]
fn unread_events_are_not_kept_forever() {
    let limits = Limits { waiting: 100_000, queue: 100_000, ..default_limits() };
    let server = Server::start(&limited(limits));
    let mut slow = server.session();
    let mut other = server.session();
    // Refusals of 200 bytes and more, all at once, to a client that reads nothing. The first one
    // comes when all requests have been read, also on a busy machine: while refusals are unread,
    // further requests are not read.
    let lock = "x".repeat(180);
    other.acquire(&lock);
    let mut bytes = Vec::new();
    for number in 0..20_000 {
        let ask = super::client::ask(&lock, Wait::Ms(2_000));
        put(&Request::Acquire(1000 + number, ask), &mut bytes);
    }
    let _ = slow.stream.write_all(&bytes); // It may be cut off before the last byte.
    server.until("it is cut off", |service| service.connections() == 1);
    assert_eq!(server.service.sessions(), 2, "its session may go on until its time is over");
    let fence = other.acquire("b");
    assert!(other.release("b", fence));
}

#[test]
fn a_thousand_clients_wait_for_one_lock_and_each_gets_it() {
    let server = Server::start(&settings());
    let mut holder = server.session();
    let mut fence = holder.acquire("a");
    let mut waiting: Vec<_> = (0..1000)
        .map(|index| {
            let mut client = server.client();
            client.open(60_000, CONNECTION);
            let number = client.ask("a", Wait::Forever);
            // One after another, so that their order is known.
            server.until("it waits", |service| service.status().waiting == index + 1);
            (client, number)
        })
        .collect();
    // Some give up, some disconnect, the others get the lock one after another.
    waiting.truncate(900);
    for (client, number) in waiting.iter_mut().step_by(9) {
        client.send(&Request::Withdraw(*number));
        assert_eq!(client.refused(*number).code, Code::Gone);
    }
    server.until("the others are gone", |service| service.status().waiting == 800);
    assert!(holder.release("a", fence));
    for (index, (client, number)) in waiting.iter_mut().enumerate() {
        if index % 9 != 0 {
            let next = client.granted(*number);
            assert!(next > fence);
            fence = next;
            assert!(client.release("a", fence));
        }
    }
    drop(waiting);
    server.until("all are gone", |service| service.sessions() == 1);
}

#[test]
fn silent_connections_count_and_do_not_harm_holders() {
    let limits = Limits { connections: 3, ..default_limits() };
    let server = Server::start(&limited(limits));
    let mut client = server.session();
    let silent = [connect(&server.name).unwrap(), connect(&server.name).unwrap()];
    server.until("all are counted", |service| service.connections() == 3);
    let refused = server.client().hello(Opening::Visit).unwrap_err();
    assert!(refused.text.contains("limits.connections"), "{refused}");
    // A refusal takes a connection too, so not all of a crowd get one.
    let mut crowd: Vec<_> = (0..200).map(|_| connect(&server.name).unwrap()).collect();
    let gone = |stream: &mut std::os::unix::net::UnixStream| {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        matches!(stream.read(&mut [0; 1]), Ok(0))
    };
    let began = std::time::Instant::now();
    while crowd.iter_mut().filter_map(|stream| gone(stream).then_some(())).count() < 100 {
        assert!(began.elapsed() < PATIENCE, "all of a crowd are kept");
    }
    drop(crowd);
    let fence = client.acquire("a");
    assert!(client.release("a", fence));
    drop(silent);
    server.until("the silent are gone", |service| service.connections() == 1);
    server.client().visit();
}

#[test]
fn processes_count_as_files_like_connections_do() {
    let server = Server::start(&limited(Limits { files: 4, ..default_limits() }));
    let inherited = Life::Connection { inherited: true };
    let mut all: Vec<_> = (0..2)
        .map(|_| {
            let mut client = server.client();
            client.open(10_000, inherited);
            client
        })
        .collect();
    let refused = server.client().hello(Opening::Visit).unwrap_err();
    assert!(refused.text.contains("LimitNOFILE"), "{refused}");
    all.pop();
    server.until("it is gone", |service| service.sessions() == 1);
    let life = Life::Process { pid: std::process::id() };
    let mut script = server.client();
    script.open(1000, life);
    let refused = server.client().hello(Opening::Visit).unwrap_err();
    assert!(refused.text.contains("LimitNOFILE"), "{refused}");
    all.pop();
    server.until("it is gone", |service| service.connections() == 1);
    server.session().acquire("a");
}

#[test]
fn the_queue_of_one_lock_is_bounded() {
    let server = Server::start(&limited(Limits { queue: 2, ..default_limits() }));
    let mut holder = server.session();
    let fence = holder.acquire("a");
    let mut waiters: Vec<_> = (0..3).map(|_| server.session()).collect();
    let numbers: Vec<u64> = waiters
        .iter_mut()
        .zip(1..)
        .map(|(waiter, place)| {
            let number = waiter.ask("a", Wait::Forever);
            server.until("it waits", |service| service.status().waiting == place.min(2));
            number
        })
        .collect();
    let refused = waiters[2].refused(numbers[2]);
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.text.contains("limits.queue"), "{refused}");
    waiters[2].acquire("b");
    assert!(holder.release("a", fence));
    waiters[0].granted(numbers[0]);
    let number = waiters[2].ask("a", Wait::Forever);
    server.until("there is room again", |service| service.status().waiting == 2);
    drop(waiters.drain(..2));
    waiters[0].granted(number);
}

#[test]
fn a_request_number_in_use_is_refused() {
    let server = Server::start(&settings());
    let mut client = server.session();
    client.acquire("a");
    let number = client.number();
    let lock = super::client::name("a");
    client.send(&Request::AwaitFree(number, lock.clone()));
    client.send(&Request::AwaitFree(number, lock));
    let refused = client.refused(number);
    assert_eq!(refused.code, Code::Invalid);
    assert!(refused.text.contains(&format!("the number {number}")), "{refused}");
}
