//! Which process a session may live with: the one that a descriptor refers to.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};

use doorway_client::{Endpoint, Options, blocking};
use doorway_protocol::{
    ClientInfo, Code, Greeting, Hello, Life, MAGIC, Opening, Refusal, VERSIONS, Wait, put,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::client::{CONNECTION, Client, NO_TTL};
use super::process::Sleeper;
use crate::common::settings::settings;
use crate::common::skip;
use crate::server::Server;

/// The variable that tells a process of these tests which node to use.
const CLIENT: &str = "DOORWAY_TEST_FOREIGN";

fn descriptor(pid: u32) -> OwnedFd {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a number");
    pidfd_open(pid, PidfdFlags::empty()).expect("the process exists")
}

/// Open a session that lives with a process, and pass a descriptor with the hello.
fn open_with(client: &mut Client, pid: u32, passed: BorrowedFd<'_>) -> Greeting {
    let opening = Opening::New { ttl_ms: 10_000, life: Life::Process { pid } };
    let hello = Hello { versions: VERSIONS, who: ClientInfo::default(), token: None, opening };
    let mut bytes = MAGIC.to_vec();
    put(&hello, &mut bytes);
    let passed = [passed];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
    // The descriptor comes with the first bytes, of whatever length.
    let (first, rest) = bytes.split_at(3);
    let sent = sendmsg(&client.stream, &[IoSlice::new(first)], &mut control, SendFlags::empty());
    assert_eq!(sent, Ok(first.len()));
    client.stream.write_all(rest).expect("the connection is there");
    client.frame().expect("a greeting")
}

fn refused(greeting: Greeting) -> Refusal {
    greeting.expect_err("no session")
}

#[test]
fn a_session_lives_with_the_process_of_the_descriptor() {
    let server = Server::start(&settings());
    let mut sleeper = Sleeper::start();
    let mut script = server.client();
    let pid = sleeper.0.id();
    open_with(&mut script, pid, descriptor(pid).as_fd()).expect("a session");
    script.acquire("a");
    drop(script);
    let mut other = server.session();
    let number = other.ask("a", Wait::No);
    assert_eq!(other.refused(number).code, Code::NotFree, "the process lives");
    let number = other.ask("a", Wait::Forever);
    sleeper.kill();
    other.granted(number);
}

#[test]
fn a_descriptor_of_another_process_is_refused() {
    let server = Server::start(&settings());
    let (sleeper, other) = (Sleeper::start(), Sleeper::start());
    let (pid, other) = (sleeper.0.id(), other.0.id());
    let why = refused(open_with(&mut server.client(), pid, descriptor(other).as_fd()));
    assert_eq!(why.code, Code::Invalid);
    assert!(why.text.contains("pid namespaces") && why.text.contains("--ttl"), "{why}");
    let null = File::open("/dev/null").unwrap();
    let why = refused(open_with(&mut server.client(), pid, null.as_fd()));
    assert!(why.text.contains("is not process"), "{why}");
    assert_eq!(server.service.sessions(), 0);
}

/// The number may belong to another process by now, but the descriptor does not.
#[test]
fn a_descriptor_of_a_process_that_has_ended_is_refused() {
    let server = Server::start(&settings());
    let mut sleeper = Sleeper::start();
    let (pid, passed) = (sleeper.0.id(), descriptor(sleeper.0.id()));
    sleeper.kill();
    let why = refused(open_with(&mut server.client(), pid, passed.as_fd()));
    assert_eq!(why.text, format!("there is no process {pid}"));
}

/// Not a test: a client in another pid namespace. It prints what it is told.
#[test]
#[ignore = "it is a client, which another test starts in another pid namespace"]
fn a_foreign_client() {
    let Ok(name) = std::env::var(CLIENT) else { return };
    let pid = std::process::id();
    let life = Life::Process { pid };
    let number = refused(Client::new(&name).hello(Opening::New { ttl_ms: 10_000, life }));
    println!("\nnumber: {number}");
    let endpoint = Endpoint::Abstract(name.clone());
    let error = blocking::Client::connect(endpoint, &Options::default().life(life)).unwrap_err();
    println!("descriptor: {error}");
    let welcome = Client::new(&name).open(NO_TTL, CONNECTION);
    println!("ttl: {}", welcome.ttl_ms);
    println!("pid: {pid}");
}

#[test]
fn a_process_of_another_pid_namespace_is_refused_with_the_reason() {
    let unshare = ["--pid", "--fork", "--kill-child"];
    let may = Command::new("unshare").args(unshare).arg("true").stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        return skip("this user cannot make a pid namespace");
    }
    let server = Server::start(&settings());
    let mut client = Command::new("unshare")
        .args(unshare)
        .arg(std::env::current_exe().unwrap())
        .args(["service::evidence::a_foreign_client", "--exact", "--ignored", "--nocapture"])
        .env(CLIENT, &server.name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Vec<_> =
        BufReader::new(client.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
    assert!(client.wait().unwrap().success(), "{lines:?}");
    let line = |start: &str| {
        let found = lines.iter().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("no {start} in {lines:?}"))
    };
    let pid = line("pid: ");
    let why = format!("process {pid} of the client is not process {pid} of the node");
    for told in [line("number: "), line("descriptor: ")] {
        assert!(told.contains(&why) && told.contains("--ttl"), "{told}");
    }
    // The node can see that client itself, so its session needs no TTL.
    assert_eq!(line("ttl: "), NO_TTL.to_string());
}
