//! A service in a process of its own, which is killed.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use doorway_daemon::listen::Doors;
use doorway_daemon::serve::{self, ServeError};
use doorway_daemon::settings::{Settings, Socket};
use doorway_protocol::{Ask, Claim, Code, Life, Opening, Reply, Request, Secret, SessionId, Wait};

use super::client::{CONNECTION, Client, ask, claim, name};
use super::process;
use crate::common::settings::settings;
use crate::common::{PATIENCE, fresh, until};
use crate::server::connect;

/// The variable with the socket and the directory of a service in a process of its own.
const DAEMON: &str = "DOORWAY_TEST_DAEMON";

/// Not a test: this runs in the process that is killed.
#[test]
#[ignore = "it is a service, which other tests start as a process"]
fn a_daemon() {
    let Ok(what) = std::env::var(DAEMON) else { return };
    let (name, directory) = what.split_once('=').unwrap();
    let settings = of(name, Path::new(directory));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The process that started this one closes its end of the pipe to stop it.
    let told = async {
        tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await.unwrap().unwrap();
    };
    let ended = runtime.block_on(serve::run(settings, Doors::default(), told));
    let served = matches!(ended, Err(ServeError::Served(_)));
    assert!(ended.is_ok() || served, "{ended:?}");
    std::process::exit(if served { 3 } else { 0 });
}

fn of(name: &str, directory: &Path) -> Settings {
    let mut settings = settings();
    settings.socket = Some(Socket::Abstract(name.to_owned()));
    settings.node.data = Some(directory.to_owned());
    settings
}

/// A service in a process of its own, which is killed when this value is dropped.
struct Daemon {
    name: String,
    directory: PathBuf,
    process: Child,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(name: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("the path of this test program"))
        .args(["service::crash::a_daemon", "--exact", "--ignored", "--nocapture"])
        .env(DAEMON, format!("{name}={}", directory.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("cannot start the daemon process")
}

impl Daemon {
    fn start() -> Self {
        let name = fresh();
        let directory = std::env::temp_dir().join(&name);
        let process = spawn(&name, &directory);
        let daemon = Self { name, directory, process };
        daemon.client();
        daemon
    }

    /// A client, as soon as the process listens.
    fn client(&self) -> Client {
        until("the service listens", || connect(&self.name).is_ok());
        Client::new(&self.name)
    }

    fn session(&self) -> Client {
        let mut client = self.client();
        client.open(10_000, CONNECTION);
        client
    }

    /// Kill it, and start another one.
    fn crash(&mut self) {
        self.process.kill().expect("cannot kill the daemon process");
        self.process.wait().expect("cannot wait for the killed daemon");
        self.process = spawn(&self.name, &self.directory);
    }

    /// Stop it gracefully, and start another one.
    fn restart(&mut self) {
        drop(self.process.stdin.take());
        let ended = self.process.wait().expect("cannot wait for the stopped daemon");
        assert!(ended.success(), "the daemon did not stop gracefully: {ended}");
        self.process = spawn(&self.name, &self.directory);
    }

    fn status(&self) -> doorway_protocol::NodeStatus {
        let mut client = self.client();
        client.visit();
        client.send(&Request::Status(1));
        match client.reply() {
            Reply::Status(1, status) => *status,
            other => panic!("no status: {other:?}"),
        }
    }
}

/// A session that a client remembers.
struct RememberedSession {
    client: Client,
    session: SessionId,
    secret: Secret,
    ttl_ms: u32,
}

impl RememberedSession {
    fn open(daemon: &Daemon, ttl_ms: u32) -> Self {
        let mut client = daemon.client();
        let (session, secret) =
            client.open(ttl_ms, CONNECTION).session.expect("the welcome to a new session names it");
        Self { client, session, secret, ttl_ms }
    }

    /// Resume with claims, and return those that are lost.
    fn resume(&mut self, daemon: &Daemon, held: Vec<Claim>) -> Result<Vec<Claim>, Code> {
        let opening = Opening::Resume {
            node: None,
            session: self.session,
            secret: self.secret,
            ttl_ms: self.ttl_ms,
            life: CONNECTION,
            held,
            waiting: Vec::new(),
            more: false,
        };
        self.client = daemon.client();
        let welcome = self.client.hello(opening).map_err(|refusal| refusal.code)?;
        assert_eq!(welcome.session, Some((self.session, self.secret)));
        Ok(welcome.lost)
    }
}

#[test]
fn after_a_crash_holders_come_back_before_another_client_enters() {
    let mut daemon = Daemon::start();
    let mut holder = RememberedSession::open(&daemon, 10_000);
    let fence = holder.client.acquire("a");
    daemon.crash();
    let mut other = daemon.session();
    let number = other.ask("a", Wait::Forever);
    let free = other.ask("b", Wait::Forever);
    other.granted(free);
    assert_eq!(holder.resume(&daemon, vec![claim("a", fence)]), Ok(Vec::new()));
    assert_eq!(daemon.status().held, 2);
    assert!(holder.client.release("a", fence));
    assert!(other.granted(number) > fence);
}

#[test]
fn a_client_that_cannot_prove_its_session_gets_nothing_back() {
    let mut daemon = Daemon::start();
    let mut holder = RememberedSession::open(&daemon, 10_000);
    let fence = holder.client.acquire("a");
    daemon.crash();
    let secret = holder.secret;
    holder.secret.0[0] ^= 1;
    assert_eq!(holder.resume(&daemon, vec![claim("a", fence)]), Err(Code::Gone));
    // A session that never held anything cannot claim anything, but continues.
    let mut other =
        RememberedSession { session: SessionId(77), secret, ttl_ms: 500, client: daemon.client() };
    let claimed = claim("a", fence);
    let permit = Claim { permits: Some(2), ..claim("b", fence) };
    let claims = vec![claimed.clone(), permit];
    assert_eq!(other.resume(&daemon, claims.clone()), Ok(claims));
    holder.secret = secret;
    assert_eq!(holder.resume(&daemon, vec![claimed]), Ok(Vec::new()));
    assert_eq!(daemon.status().held, 1);
    other.client.acquire("b"); // Nobody uses its permits.
}

#[test]
fn after_a_crash_a_holder_is_awaited_until_its_timeout() {
    let mut daemon = Daemon::start();
    let mut holder = RememberedSession::open(&daemon, 700);
    let fence = holder.client.acquire("a");
    let killed = Instant::now();
    daemon.crash();
    let mut other = daemon.session();
    assert!(other.acquire("a") > fence);
    assert!(killed.elapsed() >= Duration::from_millis(700), "too early");
    let claimed = claim("a", fence);
    let lost = holder.resume(&daemon, vec![claimed.clone()]).unwrap();
    assert_eq!(lost, [claimed], "too late");
}

/// The node does not wait for a client whose process is gone.
#[test]
fn after_a_crash_dead_processes_are_not_awaited() {
    let mut daemon = Daemon::start();
    let mut holder = process::holding(&daemon.name, "a", 60_000, false);
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    holder.kill();
    daemon.process = spawn(&daemon.name, &daemon.directory);
    let began = Instant::now();
    daemon.session().acquire("a");
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

/// A lock stays held while another process may have the connection; all other locks are served.
#[test]
fn after_a_crash_inherited_connections_keep_their_locks_and_other_locks_are_served() {
    let mut daemon = Daemon::start();
    let mut inherited = process::holding(&daemon.name, "b", 60_000, true);
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    inherited.kill();
    daemon.process = spawn(&daemon.name, &daemon.directory);
    let mut other = daemon.session();
    other.acquire("c");
    let number = other.ask("b", Wait::Ms(300));
    assert_eq!(other.refused(number).code, Code::NotFree);
}

#[test]
fn leases_are_held_over_crashes_and_stops() {
    let mut daemon = Daemon::start();
    let mut sleeper = process::Sleeper::start();
    let mut script = daemon.client();
    script.open(0, Life::Process { pid: sleeper.0.id() });
    let tied = script.acquire("tied");
    let mut script = daemon.client();
    script.open(60_000, Life::Lease);
    let leased = script.acquire("leased");
    let permits = Ask { permits: Some(2), ..ask("permits", Wait::No) };
    let number = script.ask_for(permits.clone());
    let permit = script.granted(number);
    drop(script);
    for stops in [false, true, true, false] {
        if stops {
            daemon.restart();
        } else {
            daemon.crash();
        }
        let mut other = daemon.session();
        for lock in ["tied", "leased"] {
            let number = other.ask(lock, Wait::No);
            assert_eq!(other.refused(number).code, Code::NotFree);
        }
        let number = other.ask("permits", Wait::No);
        assert_eq!(other.refused(number).code, Code::NotServed);
        let number = other.ask_for(permits.clone());
        assert_ne!(other.granted(number), permit);
        // Otherwise the next start would wait for it.
        other.send(&Request::Bye);
        assert_eq!(other.frame::<Reply>(), None);
    }
    let mut visitor = daemon.client();
    visitor.visit();
    for (lock, fence) in [("tied", tied), ("leased", leased), ("permits", permit)] {
        visitor.send(&Request::Renew(1, name(lock), fence));
        assert_eq!(visitor.reply(), Reply::Done(1));
    }
    assert!(visitor.release("leased", leased));
    assert!(visitor.release("permits", permit));
    sleeper.kill();
    let mut other = daemon.session();
    assert!(other.acquire("tied") > tied);
}

#[test]
fn after_a_graceful_stop_all_locks_are_served_at_once_and_fences_grow() {
    let mut daemon = Daemon::start();
    let mut client = daemon.session();
    let fence = client.acquire("a");
    assert!(client.release("a", fence));
    daemon.restart();
    let mut client = daemon.session();
    assert!(client.acquire("a") > fence);
    assert_eq!(daemon.status().reclaiming_ms, None);
}

#[test]
fn of_two_nodes_that_start_at_once_one_serves() {
    let daemon = Daemon::start();
    let mut second = spawn(&daemon.name, &daemon.directory);
    assert_eq!(second.wait().unwrap().code(), Some(3));
    let mut client = daemon.session();
    client.acquire("a");
}

#[test]
fn a_second_crash_forgets_no_holder() {
    let mut daemon = Daemon::start();
    let mut holder = RememberedSession::open(&daemon, 10_000);
    let fence = holder.client.acquire("a");
    daemon.crash();
    assert_eq!(daemon.status().reclaiming_ms, None);
    daemon.crash();
    let mut other = daemon.session();
    let number = other.ask("a", Wait::No);
    assert_eq!(holder.resume(&daemon, vec![claim("a", fence)]), Ok(Vec::new()));
    assert_eq!(other.refused(number).code, Code::NotFree);
    daemon.crash();
    assert_eq!(holder.resume(&daemon, vec![claim("a", fence)]), Ok(Vec::new()));
    assert!(holder.client.release("a", fence));
}

#[test]
fn a_stop_after_a_crash_forgets_no_holder() {
    let mut daemon = Daemon::start();
    let mut holder = RememberedSession::open(&daemon, 10_000);
    let fence = holder.client.acquire("a");
    daemon.crash();
    daemon.restart();
    let mut other = daemon.session();
    let number = other.ask("a", Wait::No);
    assert_eq!(holder.resume(&daemon, vec![claim("a", fence)]), Ok(Vec::new()));
    assert_eq!(other.refused(number).code, Code::NotFree);
    assert!(holder.client.release("a", fence));
}
