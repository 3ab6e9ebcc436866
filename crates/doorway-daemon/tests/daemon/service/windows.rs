//! Windows of time, each of which is taken once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use doorway_daemon::settings::{Limits, Settings};
use doorway_protocol::{ClientInfo, Code, Fence, Name, Refusal, Reply, Request, Window};
use doorway_sessions::principal::{Principal, Rights};

use super::client::{Client, name};
use crate::common::daemon::Daemon;
use crate::common::group::Group;
use crate::common::settings::settings;
use crate::common::until;
use crate::server::Server;

const HOUR: Duration = Duration::from_hours(1);

/// A window that was taken: its lock, its fence and how much of it is left.
pub(crate) type WindowGrant = (Name, Fence, u64);

impl Client {
    /// Take the current window of a lock.
    pub(crate) fn once(
        &mut self,
        lock: &str,
        period: Duration,
        key: u8,
    ) -> Result<WindowGrant, Refusal> {
        let number = self.number();
        let who = ClientInfo { label: "job".into(), host: "here".into(), pid: 7 };
        let period_ms = period.as_millis() as u64;
        self.send(&Request::Once { number, lock: name(lock), period_ms, key: [key; 16], who });
        match self.reply() {
            Reply::Window { number: of, lock, fence, left_ms } if of == number => {
                Ok((lock, fence, left_ms))
            }
            Reply::Refused(of, refusal) if of == number => Err(refusal),
            other => panic!("no answer: {other:?}"),
        }
    }

    /// The names of the windows that were taken.
    fn windows(&mut self, lock: &str) -> Vec<String> {
        let number = self.number();
        self.send(&Request::Windows(number, name(lock)));
        match self.reply() {
            Reply::Locks(of, locks) if of == number => {
                assert!(!locks.more);
                locks.locks.into_iter().map(|line| line.lock).collect()
            }
            other => panic!("no windows: {other:?}"),
        }
    }
}

fn visitor(server: &Server) -> Client {
    let mut client = server.client();
    client.visit();
    client
}

fn visitor_of(daemon: &Daemon) -> Client {
    let mut client = Client::new(daemon.socket.trim_start_matches('@'));
    client.visit();
    client
}

#[test]
fn a_window_is_taken_once_and_outlives_its_client() {
    let server = Server::start(&settings());
    let mut one = visitor(&server);
    let (lock, fence, left) = one.once("backup", HOUR, 1).unwrap();
    let (of, window) = Window::of(&lock).unwrap();
    assert_eq!((of.as_str(), window.period()), ("backup", HOUR));
    assert!(left <= window.period().as_millis() as u64, "{left}");
    // The same request is repeated: its answer was lost.
    assert_eq!(one.once("backup", HOUR, 1).unwrap().1, fence);
    drop(one);
    let mut other = visitor(&server);
    let refused = other.once("backup", HOUR, 2).unwrap_err();
    assert_eq!(refused.code, Code::NotFree);
    assert!(refused.text.contains("of `backup` (once per 1h) was taken before"), "{refused}");
    assert!(refused.text.contains("job (pid 7) on here"), "{refused}");
    // Other names and other periods have windows of their own.
    assert!(other.once("report", HOUR, 2).is_ok());
    assert!(other.once("backup", HOUR * 2, 2).is_ok());
    let windows = other.windows("backup");
    assert_eq!(windows.len(), 2);
    assert!(windows.contains(&lock.to_string()), "{windows:?}");
    assert!(other.windows("nothing").is_empty());
    // It can be given back, by its lock and its fence.
    assert!(other.release(lock.as_str(), fence));
    assert!(other.once("backup", HOUR, 2).is_ok());
}

#[test]
fn what_cannot_be_a_window_is_refused() {
    let server = Server::start(&settings());
    let mut client = visitor(&server);
    let nested = client.once("a", HOUR, 1).unwrap().0;
    for (lock, period, why) in [
        ("b", Duration::ZERO, "1 s to 31 d"),
        ("b", Duration::from_millis(999), "not 0.999 s"),
        ("b", Duration::from_millis(u64::MAX), "1 s to 31 d"),
        ("%b", HOUR, "must not begin with `%`"),
        (&"x".repeat(190), HOUR, "at most 176 bytes, not 190"),
        (nested.as_str(), HOUR, "is the lock of a window"),
    ] {
        let refused = client.once(lock, period, 1).unwrap_err();
        assert_eq!(refused.code, Code::Invalid, "{refused}");
        assert!(refused.text.contains(why), "{refused}");
    }
    // A window needs no longer `limits.ttl`, and is not cut to `limits.terraform_ttl` either.
    let minute = Duration::from_mins(1);
    let limits = Limits { ttl: minute, terraform_ttl: minute, ..settings().limits };
    let server = Server::start(&Settings { limits, ..settings() });
    let mut client = visitor(&server);
    let (lock, ..) = client.once("a", HOUR * 24, 1).unwrap();
    let service = server.service.clone();
    let local = Principal { name: "uid 0".to_owned(), uid: Some(0), rights: Rights::all() };
    let state = server.runtime.block_on(service.lock_state(&local, &lock)).unwrap();
    let expires = state.expires_in_ms[0].unwrap();
    assert!(expires > 24 * 3_600_000, "it is held for a day after its end: {expires} ms");
}

/// What the clock of the next test shows, in milliseconds since 1970.
static CLOCK: AtomicU64 = AtomicU64::new(1_795_104_000_000);

#[test]
fn the_next_window_is_free_and_a_clock_that_is_set_back_frees_no_old_one() {
    let wall_clock =
        || SystemTime::UNIX_EPOCH + Duration::from_millis(CLOCK.load(Ordering::Relaxed));
    let server = Server::start(&Settings { wall_clock, ..settings() });
    let mut client = visitor(&server);
    let mut locks = Vec::new();
    for key in 0..3 {
        let (lock, _, left) = client.once("backup", HOUR, key).unwrap();
        assert_eq!(left, HOUR.as_millis() as u64);
        locks.push(lock.to_string());
        CLOCK.fetch_add(HOUR.as_millis() as u64 - 1, Ordering::Relaxed);
        let refused = client.once("backup", HOUR, 100 + key).unwrap_err();
        assert_eq!(refused.code, Code::NotFree, "to its last millisecond");
        CLOCK.fetch_add(1, Ordering::Relaxed);
    }
    let expected = ["16", "17", "18"].map(|hour| format!("backup@1h@2026-11-19T{hour}:00:00Z"));
    assert_eq!(locks, expected);
    CLOCK.fetch_sub(HOUR.as_millis() as u64, Ordering::Relaxed);
    assert_eq!(client.once("backup", HOUR, 200).unwrap_err().code, Code::NotFree);
    // A clock before 1970, or after the calendar, is an error and nothing worse.
    CLOCK.store(u64::MAX / 4, Ordering::Relaxed);
    let refused = client.once("backup", HOUR, 201).unwrap_err();
    assert!(refused.text.contains("the clock is wrong"), "{refused}");
}

#[test]
fn a_window_stays_taken_after_a_crash_and_after_a_drain() {
    let mut daemon = Daemon::alone("");
    let (lock, fence, _) = visitor_of(&daemon).once("backup", HOUR * 24, 1).unwrap();
    daemon.crash();
    daemon.ready();
    let mut client = visitor_of(&daemon);
    assert_eq!(client.once("backup", HOUR * 24, 2).unwrap_err().code, Code::NotFree);
    // The client whose answer was lost in the crash gets the same one.
    let (again, same, _) = client.once("backup", HOUR * 24, 1).unwrap();
    assert_eq!((again, same), (lock, fence));
    // A window that was taken is nothing to wait for.
    daemon.client().drain(None).unwrap();
    assert!(daemon.ended().success());
    daemon.spawn();
    daemon.ready();
    let refused = visitor_of(&daemon).once("backup", HOUR * 24, 3).unwrap_err();
    assert_eq!(refused.code, Code::NotFree, "{refused}");
}

#[test]
fn a_lock_with_permits_has_no_windows() {
    let rule = "[[lock]]\nnames = \"pool*\"\nalgorithm = \"raymond-k\"\npermits = 3\n";
    let before = "[[lock]]\nnames = \"pool@*\"\npermits = 1\n";
    let daemon = Daemon::alone(rule);
    let refused = visitor_of(&daemon).once("pool", HOUR, 1).unwrap_err();
    assert_eq!(refused.code, Code::NotServed);
    assert!(refused.text.ends_with(before.trim_end()), "{refused}");
    let daemon = Daemon::alone(&format!("{before}{rule}"));
    assert!(visitor_of(&daemon).once("pool", HOUR, 1).is_ok());
    assert_eq!(visitor_of(&daemon).once("pool", HOUR, 2).unwrap_err().code, Code::NotFree);
}

#[test]
fn a_node_whose_clock_is_off_refuses_and_the_others_do_not() {
    let mut group = Group::start("");
    let ahead = &mut group.nodes[2];
    ahead.kill();
    ahead.ahead = 3600;
    ahead.spawn();
    ahead.ready();
    let mut clients: Vec<Client> = group.nodes.iter().map(visitor_of).collect();
    for (lock, client) in ["one", "two"].iter().zip(&mut clients) {
        // The node that was started again has to be back first.
        until("a window is taken", || client.once(lock, HOUR, 1).is_ok());
    }
    let mut why = String::new();
    until("the node refuses because of its clock", || {
        let refused = clients[2].once("three", HOUR, 1).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable, "{refused}");
        why = refused.text;
        why.starts_with("the clock of this node")
    });
    for part in ["those of the other members by 360 s", "that of n1 is 3", "that of n2 is 3"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    // An hour is less than a tenth of a day.
    until("a window is taken", || clients[2].once("daily", HOUR * 24, 1).is_ok());
}
