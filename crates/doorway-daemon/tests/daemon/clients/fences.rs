//! Every way of docs/fences.md to check a fence refuses a holder that was paused beyond its time to
//! live.
//!
//! These tests run the statements of the page and the example that it names. Without the databases
//! (on Debian, the packages `sqlite3` and `postgresql`) these tests say so and pass, but not in CI.

#![expect(clippy::unwrap_used, reason = "where nothing can be prepared, nothing can be tested")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Endpoint, Fence, Options};
use rustix::process::Signal;

use super::pauses::Holder;
use crate::common::daemon::{Daemon, signal};
use crate::common::{Place, addresses, until};

#[path = "../../../../doorway-client/examples/fenced.rs"]
#[allow(dead_code, reason = "its main is for those who try it")]
mod fenced;

/// The variable with the node and the resource of a client in a process of its own.
const WRITER: &str = "DOORWAY_TEST_WRITER";

/// A resource that checks fences: its kind and its place.
#[derive(Clone, Debug)]
struct Resource {
    kind: String,
    place: String,
}

/// The statements of the page: two tables, and how to write to each of them.
fn statements() -> [String; 4] {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fences.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```sql\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.map(str::to_owned).collect::<Vec<_>>().try_into().unwrap()
}

impl Resource {
    fn new(kind: &str, place: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), place: place.into() }
    }

    /// Create the resource.
    fn prepare(&self) {
        let [account, _, gate, _] = statements();
        self.sql(&account);
        self.sql(&gate);
        self.sql("INSERT INTO account VALUES (1, 0, 0)");
    }

    /// Execute a statement, and return its output.
    fn sql(&self, statement: &str) -> String {
        let mut command = match self.kind.as_str() {
            "sqlite" => Command::new("sqlite3"),
            _ => psql(&self.place),
        };
        if self.kind == "sqlite" {
            command.arg(&self.place);
        }
        let done = command.arg(statement).stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Write as a holder. True if that was allowed.
    fn write(&self, fence: Fence, value: u32) -> bool {
        if self.kind == "http" {
            return match put(&self.place, &format!("Doorway-Fence: {fence}\r\n"), value) {
                200 => true,
                412 => false,
                status => panic!("{status}"),
            };
        }
        let [_, row, _, gate] = statements();
        let fill = |statement: &str, id: &str| {
            let statement = statement.replace(":value", &value.to_string());
            statement.replace(":fence", &fence.to_string()).replace(":id", id)
        };
        let passes = |statement: &str| match self.sql(statement) {
            none if none.is_empty() => false,
            fence_now => {
                assert_eq!(fence_now, fence.to_string());
                true
            }
        };
        let (row, gate) = (passes(&fill(&row, "1")), passes(&fill(&gate, "'report'")));
        assert_eq!(row, gate, "both ways agree");
        row
    }

    /// The current content.
    fn read(&self) -> String {
        if self.kind == "http" {
            return exchange(&self.place, "GET / HTTP/1.1\r\n\r\n").1;
        }
        self.sql("SELECT balance FROM account WHERE id = 1")
    }
}

/// Send a request, and return status and body.
fn exchange(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.trim().to_owned())
}

fn put(address: &str, headers: &str, value: u32) -> u16 {
    let body = value.to_string();
    let length = body.len();
    let request = format!("PUT /report HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n");
    exchange(address, &(request + &body)).0
}

/// Not a test: a client that holds a lock and writes on command.
#[test]
#[ignore = "it is a client, which other tests start as a process"]
fn a_writer() {
    let Ok(what) = std::env::var(WRITER) else { return };
    let [socket, kind, place] = what.split('|').collect::<Vec<_>>()[..] else { return };
    let resource = Resource::new(kind, place);
    let options = Options::default().ttl(Duration::from_millis(600));
    let client = Client::connect(socket.parse::<Endpoint>().unwrap(), &options).unwrap();
    let grant = client.acquire("report").enter().unwrap();
    assert!(resource.write(grant.fence(), 1));
    println!("\nfence {}", grant.fence());
    for value in std::io::stdin().lines().map_while(Result::ok) {
        println!("wrote {}", resource.write(grant.fence(), value.parse().unwrap()));
    }
}

/// A holder writes, is paused beyond its time to live, and continues to write.
fn refuses_a_paused_holder(resource: &Resource) {
    let daemon = Daemon::alone("");
    let what = format!("{}|{}|{}", daemon.endpoint(), resource.kind, resource.place);
    let mut paused = Holder::run("clients::fences::a_writer", WRITER, &what);
    assert_eq!(resource.read(), "1");
    signal(&paused.process, Signal::STOP);
    let client = daemon.client();
    let grant = client.acquire("report").enter().unwrap();
    assert!(grant.fence() > paused.fence);
    assert!(resource.write(grant.fence(), 2));
    signal(&paused.process, Signal::CONT);
    paused.tell("3");
    assert_eq!(paused.line("wrote "), "false");
    assert_eq!(resource.read(), "2", "what the next one wrote stands");
    assert!(resource.write(grant.fence(), 4), "who is inside may write again");
    assert_eq!(resource.read(), "4");
}

// `cargo xtask test` installs the databases in CI, and runs the tests that need them.
#[test]
#[ignore = "it needs SQLite"]
fn the_statements_refuse_a_paused_holder_in_sqlite() {
    let place = Place::new();
    let resource = Resource::new("sqlite", place.file("database").display().to_string());
    resource.prepare();
    refuses_a_paused_holder(&resource);
}

#[test]
#[ignore = "it needs PostgreSQL"]
fn the_statements_refuse_a_paused_holder_in_postgresql() {
    let server = Postgres::start(&programs().expect("PostgreSQL is installed"));
    let resource = Resource::new("postgres", server.address.clone());
    resource.prepare();
    refuses_a_paused_holder(&resource);
}

#[test]
fn the_example_of_http_refuses_a_paused_holder() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let resource = Resource::new("http", listener.local_addr().unwrap().to_string());
    // It ends with the process.
    std::thread::spawn(move || fenced::serve(&listener));
    assert_eq!(put(&resource.place, "", 9), 428, "a fence is wanted");
    refuses_a_paused_holder(&resource);
}

/// Where Debian puts the programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let programs = versions.map(|version| version.path().join("bin"));
    programs.filter(|path| path.join("postgres").is_file()).max()
}

fn psql(address: &str) -> Command {
    let (host, port) = address.rsplit_once(':').unwrap();
    let mut command = Command::new("psql");
    command.args(["-h", host, "-p", port, "-U", "postgres", "-XAtq", "-c"]);
    command
}

/// A server in a directory of its own. Both are removed with this value.
struct Postgres {
    process: Child,
    address: String,
    _place: Place,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        signal(&self.process, Signal::INT); // It ends at once, but in order.
        let _ = self.process.wait();
    }
}

impl Postgres {
    fn start(programs: &Path) -> Self {
        let place = Place::new();
        // It refuses to be run as root.
        let nobody = rustix::process::geteuid().is_root().then_some(65534);
        chown(place.path(), nobody, nobody).unwrap();
        let command = |program: &str| {
            let mut command = match nobody {
                Some(user) => {
                    let mut command = Command::new("setpriv");
                    command.args([format!("--reuid={user}"), format!("--regid={user}")]);
                    command.arg("--clear-groups").arg(programs.join(program));
                    command
                }
                None => Command::new(programs.join(program)),
            };
            command.arg("-D").arg(place.file("data")).current_dir(place.path());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let mut init = command("initdb");
        init.args(["-U", "postgres", "-A", "trust", "--no-sync", "--locale=C"]);
        assert!(init.status().unwrap().success(), "initdb");
        let [address] = addresses(1).try_into().unwrap();
        let (host, port) = address.rsplit_once(':').unwrap();
        let mut serve = command("postgres");
        serve.args(["-p", port, "-c", &format!("listen_addresses={host}"), "-c", "fsync=off"]);
        let process = serve.args(["-c", "unix_socket_directories="]).spawn().unwrap();
        let server = Self { process, address, _place: place };
        let ask = || psql(&server.address).arg("SELECT 1").output();
        until("the database answers", || ask().is_ok_and(|done| done.status.success()));
        server
    }
}
