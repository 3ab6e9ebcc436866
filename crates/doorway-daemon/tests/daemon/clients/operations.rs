//! What an operator does with a node that runs: drain it, restart it, change its settings.

use std::fs;
use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Code, Endpoints, Error, Options, TlsConfig};
use doorway_sessions::ledger::LedgerContents;
use rustix::process::Signal;

use crate::common::daemon::{Daemon, tcp};
use crate::common::group::remote;
use crate::common::{PATIENCE, code, until};

#[test]
fn a_node_that_is_drained_ends_when_nothing_is_held() {
    let mut daemon = Daemon::alone("");
    let client = daemon.client();
    client.on_lost(|lost| panic!("{lost}"));
    let grant = client.acquire("a").enter().unwrap();
    let visitor = daemon.client();
    let refused = visitor.drain(Some(Duration::from_millis(200))).unwrap_err();
    assert!(refused.to_string().contains("1 lock is still held; the node"), "{refused}");
    let refused = visitor.acquire("b").enter().map(drop).unwrap_err();
    let Error::Refused(refused) = refused else { panic!("{refused}") };
    assert_eq!(refused.code, Code::Unavailable);
    assert!(!grant.is_lost(), "a node that drains takes no lock from its holder");
    std::thread::scope(|scope| {
        let drained = scope.spawn(|| visitor.drain(Some(PATIENCE)));
        until("it drains again", || daemon.log().matches("the node drains").count() == 2);
        grant.release().unwrap();
        drained.join().unwrap().unwrap();
    });
    assert!(daemon.ended().success());
}

/// A right that the file gives takes effect, and one that it takes away does not any more.
#[test]
fn clients_of_the_file_change_with_a_signal() {
    let daemon = Daemon::alone("[limits]\ngrants = 1\n");
    let client = daemon.client();
    let _one = client.acquire("a").enter().unwrap();
    assert!(client.acquire("b").within(Duration::ZERO).enter().is_err(), "one is the limit");
    let text = fs::read_to_string(&daemon.file).unwrap();
    fs::write(&daemon.file, text.replace("grants = 1", "grants = 2")).unwrap();
    daemon.signal(Signal::HUP);
    until("the limit is raised", || client.acquire("b").within(Duration::ZERO).enter().is_ok());
    assert!(daemon.log().contains("changed: [limits]"), "{}", daemon.log());
    fs::write(&daemon.file, "nonsense = 1\n").unwrap();
    daemon.signal(Signal::HUP);
    until("it is reported", || daemon.log().contains("the settings are not reloaded"));
    drop(client.acquire("b").within(PATIENCE).enter().unwrap());
}

#[test]
fn rights_that_the_file_takes_away_are_gone_on_an_open_connection() {
    let daemon = remote("");
    let (sessions, _) = daemon.tcp.clone().unwrap();
    let client = Client::connect(tcp(&sessions), &daemon.over_tcp()).unwrap();
    let held = client.acquire("a").enter().unwrap();
    client.inspect("a").unwrap();
    let text = fs::read_to_string(&daemon.file).unwrap();
    let all = "\"acquire\", \"inspect\", \"break\"";
    assert!(text.contains(all));
    fs::write(&daemon.file, text.replace(all, "\"inspect\"")).unwrap();
    daemon.signal(Signal::HUP);
    until("the settings are reloaded", || daemon.log().contains("changed: [[client]]"));
    let refused = client.acquire("b").within(Duration::ZERO).enter().map(drop).unwrap_err();
    assert_eq!(code(&refused), Code::Forbidden);
    client.inspect("a").unwrap();
    assert!(!held.is_lost(), "what is held stays");
    held.release().unwrap();
    fs::write(&daemon.file, text.replace(all, "\"acquire\"")).unwrap();
    daemon.signal(Signal::HUP);
    until("the client may acquire again", || client.acquire("b").enter().is_ok());
    assert_eq!(code(&client.inspect("a").map(drop).unwrap_err()), Code::Forbidden);
}

#[test]
fn tokens_of_the_file_change_with_a_signal_and_the_log_says_what_needs_a_restart() {
    let daemon = remote("");
    let (sessions, _) = daemon.tcp.clone().unwrap();
    let authority = fs::read(daemon.place.file("ca.crt")).unwrap();
    let connect = |token: &str| {
        let tls = TlsConfig::new(&authority, "n1.test.doorway").unwrap();
        let client = Client::connect(tcp(&sessions), &Options::default().tls(tls).token(token))?;
        client.acquire("a").enter().map(drop)
    };
    let (old, new) = (fs::read_to_string(daemon.place.file("ci.token")).unwrap(), "0".repeat(32));
    connect(&old).unwrap();
    assert_eq!(code(&connect(&new).unwrap_err()), Code::Forbidden);

    // Another client is added.
    let before = fs::read_to_string(&daemon.file).unwrap();
    fs::write(daemon.place.file("new.token"), &new).unwrap();
    let added = "[[client]]\nname = \"new\"\ntoken_file = \"new.token\"\n\
                 rights = [{ names = \"*\", may = [\"acquire\"] }]\n";
    fs::write(&daemon.file, format!("{before}{added}")).unwrap();
    daemon.signal(Signal::HUP);
    until("the new token is accepted", || connect(&new).is_ok());
    connect(&old).unwrap();
    until("the log tells it", || daemon.log().contains("changed: [[client]] file="));

    // The first one loses its token, and a setting changes that needs a restart.
    let text = format!("{before}{added}").replace("token_file = \"ci.token\"\n", "");
    fs::write(&daemon.file, text.replace("drain = \"100ms\"", "drain = \"200ms\"")).unwrap();
    daemon.signal(Signal::HUP);
    let told = "changed: [[client]]; only a restart changes: drain";
    until("the settings are reloaded", || daemon.log().contains(told));
    assert_eq!(code(&connect(&old).unwrap_err()), Code::Forbidden);
    connect(&new).unwrap();

    // The settings are the same, but the token in the file is another one.
    fs::write(daemon.place.file("new.token"), &old).unwrap();
    daemon.signal(Signal::HUP);
    until("the token in the file counts", || connect(&old).is_ok());
    assert_eq!(code(&connect(&new).unwrap_err()), Code::Forbidden);
}

/// After a crash of the machine, the next process waits for sessions as long as the marker says.
#[test]
fn a_longer_ttl_of_the_file_is_in_the_ledger_before_a_session_gets_it() {
    let daemon = Daemon::alone("[limits]\nttl = \"2s\"\n");
    let ledger = daemon.place.file("data").join("sessions");
    let longest = || LedgerContents::read(&fs::read(&ledger).unwrap(), "", 0).ttl;
    assert_eq!(longest(), Duration::from_secs(2));
    let text = fs::read_to_string(&daemon.file).unwrap();
    fs::write(&daemon.file, text.replace("2s", "60s")).unwrap();
    daemon.signal(Signal::HUP);
    until("the settings are reloaded", || daemon.log().contains("changed: [limits]"));
    assert_eq!(longest(), Duration::from_mins(1));
}

#[test]
fn a_client_at_the_http_port_is_told_where_sessions_are() {
    let daemon = remote("");
    let (sessions, http) = daemon.tcp.clone().unwrap();
    let error = Client::connect(tcp(&http), &daemon.over_tcp()).unwrap_err().to_string();
    let told = format!("this is the HTTP port of the node n1; sessions are at {sessions}");
    assert_eq!(error, told);
    // Another node of the list may serve the client.
    let both = Endpoints::parse(&format!("tcp://{http},tcp://{sessions}")).unwrap();
    let client = Client::connect(both, &daemon.over_tcp()).unwrap();
    client.acquire("a").enter().unwrap().release().unwrap();
}
