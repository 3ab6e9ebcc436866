//! Which process a session may live with: the one that a descriptor refers to.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use doorway_client::{Endpoint, Options, blocking};
use doorway_protocol::{Code, Greeting, Life, Opening, Refusal, VERSIONS, Wait};

use super::client::{CONNECTION, Client, NO_TTL, descriptor};
use super::process::Sleeper;
use crate::common::settings::settings;
use crate::common::skip;
use crate::server::Server;

/// The variable that tells a process of these tests which node to use.
const CLIENT: &str = "DOORWAY_TEST_FOREIGN";

fn refused(greeting: Greeting) -> Refusal {
    greeting.expect_err("no session")
}

#[test]
fn a_session_lives_with_the_process_of_the_descriptor() {
    let server = Server::start(&settings());
    let mut sleeper = Sleeper::start();
    let mut script = server.client();
    let pid = sleeper.0.id();
    script.hello_with(10_000, pid, descriptor(pid).as_fd()).expect("a session");
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
    let why = refused(server.client().hello_with(10_000, pid, descriptor(other).as_fd()));
    assert_eq!(why.code, Code::Invalid);
    assert!(why.text.contains("pid namespaces") && why.text.contains("--ttl"), "{why}");
    let null = File::open("/dev/null").unwrap();
    let why = refused(server.client().hello_with(10_000, pid, null.as_fd()));
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
    let why = refused(server.client().hello_with(10_000, pid, passed.as_fd()));
    assert_eq!(why.text, format!("there is no process {pid}"));
}

/// Clients of 0.1.0 speak version 1 and pass none.
#[test]
fn a_number_without_a_descriptor_is_believed_only_from_a_client_of_version_1() {
    let server = Server::start(&settings());
    let mut sleeper = Sleeper::start();
    let pid = sleeper.0.id();
    let opening = || Opening::New { ttl_ms: 10_000, life: Life::Process { pid } };
    let said_by = |versions| {
        let mut client = server.client();
        client.say_hello_of(versions, opening());
        let greeting = client.frame::<Greeting>().expect("a greeting");
        (client, greeting)
    };
    for versions in [(1, 2), (2, 2), VERSIONS] {
        let why = refused(said_by(versions).1);
        assert_eq!(why.code, Code::Invalid);
        assert!(why.text.contains("by its number alone") && why.text.contains("pidfd"), "{why}");
    }
    assert_eq!(server.service.sessions(), 0);
    let (_old, greeting) = said_by((1, 1));
    greeting.expect("a session");
    assert_eq!(server.service.sessions(), 1);
    sleeper.kill();
    let why = refused(said_by(VERSIONS).1);
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
