//! What happens in moments that nobody can hit from outside.

use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

use doorway_node::Config;
use doorway_protocol::{Ask, ClientInfo, Code, Life, Mode, Name, Secret, Wait};
use tokio::task::coop;

use super::open::End;
use super::outbox::Outbox;
use super::reclaim::Awaited;
use super::{Peer, Service, Session};
use crate::clock::Moment;
use crate::ledger::{Ledger, LedgerContents, Record, SessionRecord};
use crate::principal::{Principal, Rights};
use crate::settings::{Limits, Overrides, Settings};

const CONNECTION: Life = Life::Connection { inherited: false };

/// A directory that goes away with this value.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(format!("doorway-service-{process}-{number}")))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn service(ledger: Option<(Ledger, LedgerContents)>) -> Service {
    let settings = Settings {
        node: Config::default(),
        socket: None,
        idle_stop: None,
        ..Settings::local(&Overrides::default()).expect("it asks for nothing")
    };
    Service::start(&settings, ledger).await.expect("nothing is wrong with the settings")
}

fn principal(name: &str) -> Principal {
    Principal { name: name.to_owned(), uid: None, rights: Rights::all() }
}

fn open(service: &Service, name: &str, life: Life) -> Arc<Session> {
    let (mut peer, who) = (Peer::default(), ClientInfo::default());
    service.open(&mut peer, &principal(name), &who, 10_000, life).expect("a session")
}

fn ask(lock: &str) -> Ask {
    let lock = Name::new(lock).expect("a name");
    Ask { lock, mode: Mode::Exclusive, permits: None, wait: Wait::No }
}

#[tokio::test]
async fn a_sign_of_life_in_the_last_moment_counts_and_one_after_it_is_refused() {
    let service = service(None).await;
    let session = open(&service, "client ci", Life::Lease);
    let fence = service.acquire_wait(&session, 1, ask("a")).await.unwrap();
    let (by, lock) = (principal("client ci"), ask("a").lock);
    // Whoever looks after silent sessions has seen that it is late, and then it is renewed.
    session.heard(Moment(0));
    service.renew(&by, &lock, fence).unwrap();
    service.0.end(&session, End::Silent);
    assert!(!session.is_over());
    assert_eq!(service.held(), 1);
    session.heard(Moment(0));
    service.0.end(&session, End::Silent);
    assert!(session.is_over());
    assert_eq!(service.renew(&by, &lock, fence).unwrap_err().code, Code::Gone);
}

/// Or it would count as one that waits, and the node would know nothing of it.
#[tokio::test]
async fn a_request_is_made_however_much_its_connection_has_done() {
    let service = service(None).await;
    let (holder, waiter) =
        (open(&service, "client ci", CONNECTION), open(&service, "client ci", CONNECTION));
    service.acquire_wait(&holder, 1, ask("a")).await.expect("it is free");
    let nothing_left = |context: &mut Context<'_>| {
        while let Poll::Ready(turn) = coop::poll_proceed(context) {
            turn.made_progress();
        }
        Poll::Ready(())
    };
    poll_fn(nothing_left).await;
    service.ask(&waiter, 1, Ask { wait: Wait::Forever, ..ask("a") });
    let clients = service.0.node.clients_of(&ask("a").lock).expect("it is held");
    assert_eq!(clients.waiting.len(), 1);
}

/// Or a client could hear that it has lost a lock before it hears that it got it.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_told_before_anyone_can_take_it_away() {
    let service = service(None).await;
    let session = open(&service, "client ci", CONNECTION);
    let outbox: Arc<Outbox> = Arc::default();
    session.state().outbox = Some(Arc::clone(&outbox));
    let (go, wait) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let busy = std::thread::spawn(move || {
        outbox.silent(|| {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        });
    });
    told.recv().unwrap();
    let (asking, asked) = (service.clone(), Arc::clone(&session));
    let asks = std::thread::spawn(move || asking.ask(&asked, 1, ask("a")));
    while service.held() == 0 {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(session.is_locked(), "whoever breaks it must wait until it is told");
    go.send(()).unwrap();
    asks.join().unwrap();
    busy.join().unwrap();
}

#[tokio::test]
async fn the_ledger_knows_the_permits_that_were_asked_for_whatever_others_ask() {
    let place = Place::new();
    let limits = Limits::default();
    let ledger = Ledger::open(&place.0, false, limits.ttl).unwrap();
    let service = service(Some(ledger)).await;
    let inner = &service.0;
    let session = open(&service, "client ci", Life::Lease);
    let handle = inner.node.open("a").unwrap();
    let guard = handle.lock_owned().await.unwrap();
    // Another one has just come, and will be refused.
    let (_, _ticket) = inner.permits.enter(&ask("a").lock, 2).unwrap();
    let wanted = super::acquire::Wanted::plain(ask("a"), handle);
    inner.keep(&session, &mut session.state(), guard, wanted).unwrap();
    drop((session, service));
    let (_, former) = Ledger::open(&place.0, false, limits.ttl).unwrap();
    let grants: Vec<_> = former
        .records
        .iter()
        .filter_map(|(_, record)| match record {
            Record::Grant(grant) => Some(grant.permits),
            _ => None,
        })
        .collect();
    assert_eq!(grants, [None]);
}

/// A connection may be cut long before anyone can see it.
#[tokio::test]
async fn a_stop_leaves_those_of_whom_nothing_was_heard() {
    let (place, ttl) = (Place::new(), Limits::default().ttl);
    for (silent, left) in [(Duration::ZERO, 0), (Duration::from_secs(6), 1)] {
        let service = service(Some(Ledger::open(&place.0, true, ttl).unwrap())).await;
        let (mut peer, who) = (Peer { remote: true, ..Peer::default() }, ClientInfo::default());
        let by = principal("client ci");
        let session = service.open(&mut peer, &by, &who, 10_000, CONNECTION).unwrap();
        session.state().outbox = Some(Arc::default());
        service.acquire_wait(&session, 1, ask("a")).await.unwrap();
        session.heard(Moment(Moment::now().0 - silent.as_nanos() as u64));
        service.stop(Duration::ZERO).await;
        drop((session, service));
        let (_, former) = Ledger::open(&place.0, true, ttl).unwrap();
        assert_eq!(former.records.len(), left);
    }
}

#[tokio::test]
async fn the_longest_of_names_is_kept_as_it_is() {
    let service = service(None).await;
    let name = format!("client {}", "x".repeat(63));
    assert_eq!(open(&service, &name, Life::Lease).record().principal, name);
}

/// Nobody can tell whether a process lives that cannot be seen; its children may.
#[tokio::test]
async fn a_connection_of_a_process_that_cannot_be_seen_may_be_inherited_by_others() {
    let service = service(None).await;
    let session = open(&service, "uid 0", Life::Connection { inherited: true });
    assert!(session.is_orphan());
}

fn record(number: u64, ttl_ms: u32, pid: Option<u32>) -> (u32, Record) {
    let (client, principal) = (String::new(), "uid 0".to_owned());
    let (secret, life, uid) = (Secret([0; 16]), CONNECTION, Some(0));
    let (remote, started) = (false, None);
    let session = SessionRecord {
        number,
        secret,
        ttl_ms,
        life,
        remote,
        pid,
        started,
        uid,
        principal,
        client,
    };
    (number as u32, Record::Session(session))
}

#[test]
fn only_those_who_are_known_to_be_gone_are_not_waited_for() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let waited = |pid| {
        let records = vec![record(1, 10_000, pid)];
        let former = LedgerContents { same_boot: true, records, ..LedgerContents::default() };
        !Awaited::new(&former, &Limits::default()).is_empty()
    };
    assert!(!waited(Some(child.id())));
    assert!(waited(Some(std::process::id())));
    // Of another namespace, or not to be seen for lack of descriptors when it came.
    assert!(waited(Some(0)) && waited(None));
}

#[test]
fn sessions_are_waited_for_as_long_as_they_could_live_when_they_were_opened() {
    let limits = Limits { ttl: Duration::from_secs(1), ..Limits::default() };
    let minute = Duration::from_mins(1);
    let left = |former: &LedgerContents| {
        let until = Awaited::new(former, &limits).until();
        until.map_or(Duration::ZERO, |until| until.since(Moment::now()))
    };
    let records = vec![record(1, 60_000, Some(std::process::id()))];
    let known = LedgerContents { same_boot: true, records, ..LedgerContents::default() };
    assert!(left(&known) > minute / 2);
    assert!(
        left(&LedgerContents { lacking: true, ttl: minute, ..LedgerContents::default() })
            > minute / 2
    );
    assert!(left(&LedgerContents { lacking: true, ..LedgerContents::default() }) > minute / 120);
}

#[test]
fn a_ledger_that_lacks_some_remembers_for_how_long_over_every_start() {
    let place = Place::new();
    let (minute, second) = (Duration::from_mins(1), Duration::from_secs(1));
    let open = |tcp, ttl| Ledger::open(&place.0, tcp, ttl).unwrap();
    drop(open(true, minute));
    reboot(&place);
    for settled in [false, false, true] {
        let (ledger, former) = open(false, second);
        assert_eq!((former.lacking, former.ttl), (true, minute));
        ledger.close(settled);
    }
    let (_, former) = open(false, second);
    assert!(!former.lacking, "all have been waited for");
}

/// Let the ledger be of another start of the machine.
fn reboot(place: &Place) {
    let path = place.0.join("sessions");
    let mut bytes = std::fs::read(&path).unwrap();
    crate::ledger::of_another_boot(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
}
