//! A node whose disk is full. The disk is a small file system of its own, in a mount namespace.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::place::{DOORWAY, Place, Process, until};
use crate::skip::skip;

/// A place with a small disk, on which the node has its data.
struct SmallDisk {
    place: Place,
    unshare: Command,
    disk: PathBuf,
}

impl SmallDisk {
    /// None if this user cannot mount a file system.
    fn new() -> Option<Self> {
        let user: &[&str] = &["--user", "--map-root-user", "--mount"];
        let trial = "mount -t tmpfs none /mnt";
        let may = |words: &&&[&str]| {
            let tried = Command::new("unshare").args(**words).args(["sh", "-c", trial]).output();
            tried.is_ok_and(|done| done.status.success())
        };
        let Some(words) = [&user[2..], user].iter().find(may).copied() else {
            skip("this user cannot mount a file system");
            return None;
        };
        let place = Place::empty();
        let (disk, socket) = (place.file("disk"), place.socket());
        fs::create_dir(&disk).expect("a directory");
        let settings = format!("socket = \"{socket}\"\ndata = \"{}/data\"\n", disk.display());
        fs::write(place.file("doorway.toml"), settings).expect("a file");
        let mut unshare = Command::new("unshare");
        unshare.args(words).args(["sh", "-c"]).current_dir(&place.directory).stdin(Stdio::null());
        Some(Self { place, unshare, disk })
    }

    /// Start a shell that does this after the disk was mounted.
    fn start(&mut self, line: &str) -> Process {
        let serve = format!("{DOORWAY} serve --config doorway.toml");
        let line = line.replace("SERVE", &serve);
        let log = File::create(self.place.file("stderr")).expect("a log");
        let mount = "mount -t tmpfs -o size=256k none disk";
        Process::spawn(self.unshare.arg(format!("{mount} && {line}")).stderr(log))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.file("stderr")).expect("a log")
    }

    /// The lines of the log about the ledger.
    fn lines(&self) -> Vec<String> {
        let log = self.log();
        log.lines().filter(|line| line.contains("ledger")).map(str::to_owned).collect()
    }

    fn get(&self, path: &str) -> String {
        let socket = self.place.socket();
        let name = socket.strip_prefix('@').expect("an abstract socket");
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        let mut stream = UnixStream::connect_addr(&address).expect("a node that listens");
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("a response");
        text
    }

    /// What `doorway doctor` finds, and whether it succeeds.
    fn doctor(&self) -> (bool, String) {
        let done = self.place.command(["doctor", "--config", "doorway.toml"]);
        let done = { done }.current_dir(&self.place.directory).output().expect("it runs");
        (done.status.success(), String::from_utf8(done.stdout).expect("text"))
    }
}

/// Whether the metrics of a node have this line.
fn has(metrics: &str, line: &str) -> bool {
    metrics.lines().any(|it| it == line)
}

#[test]
fn a_full_disk_is_told_everywhere_and_so_is_its_end() {
    let Some(mut small) = SmallDisk::new() else { return };
    let node = small.start("exec SERVE");
    until("the node answers", || small.place.output("status").status.success());
    let disk = PathBuf::from(format!("/proc/{}/root", node.id()));
    let filler = disk.join(small.disk.strip_prefix("/").expect("a path")).join("filler");
    assert!(small.get("/health").starts_with("HTTP/1.1 200 "));
    assert!(has(&small.get("/metrics"), "doorway_ledger_writable 1"));
    assert!(small.doctor().0, "{}", small.doctor().1);

    let mut file = File::create(&filler).expect("a file on the disk");
    while file.write_all(&[1; 4096]).is_ok() {}
    drop(file);
    let data = small.disk.join("data").display().to_string();
    let why = format!("no space is left in {data}; make room");
    // It may have been looked at in the same second, before the disk was full.
    until("the node sees it", || !small.get("/health").starts_with("HTTP/1.1 200 "));
    let health = small.get("/health");
    assert!(health.starts_with("HTTP/1.1 503 ") && health.contains(&why), "{health}");
    let metrics = small.get("/metrics");
    assert!(has(&metrics, "doorway_ledger_writable 0") && has(&metrics, "doorway_serving 0"));
    let status = small.place.answer("status");
    assert!(status.contains("ledger    has not been writable for "), "{status}");
    assert!(status.contains(&data) && status.contains("make room"), "{status}");
    let status: serde_json::Value =
        serde_json::from_str(&small.place.answer("status --json")).expect("JSON");
    assert_eq!(status["ledger"]["error"], format!("no space is left in {data}"));
    let (healthy, found) = small.doctor();
    let wrong = found.lines().find(|line| line.starts_with("wrong    node"));
    assert!(!healthy && wrong.is_some_and(|line| line.contains(&data)), "{found}");
    assert!(found.contains("make room on its file system"), "{found}");
    // More records than fit into the pages that the file has.
    let names: Vec<String> = (0..24).map(|number| format!("x{number}")).collect();
    let run = format!("run -n {} -- true", names.join(" "));
    let done = small.place.output(&run);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(69), "{said}");
    assert_eq!(said.matches("No space left on device").count(), 1, "{said}");
    let [begin] = &small.lines()[..] else { panic!("{}", small.log()) };
    assert!(begin.contains("WARN") && begin.matches(&data).count() == 1, "{begin}");
    assert!(begin.contains("make room"), "{begin}");

    fs::remove_file(filler).expect("room");
    // Nobody asks the node.
    until("the node sees room", || small.lines().len() == 2);
    let end = &small.lines()[1];
    assert!(end.contains("WARN") && end.contains("can be written again"), "{end}");
    assert!(small.get("/health").starts_with("HTTP/1.1 200 "));
    assert!(has(&small.get("/metrics"), "doorway_ledger_writable 1"));
    assert!(!small.place.answer("status").contains("ledger"));
    assert!(small.place.output(&run).status.success());
    assert_eq!(small.lines().len(), 2, "{}", small.log());
}

/// What a node says that cannot start: one line with the directory, the reason and the remedy.
fn assert_told_once(small: &SmallDisk, node: Process) {
    assert!(!node.end().success());
    let log = small.log();
    let last = log.lines().last().unwrap_or_default();
    let count = |what: &str| log.matches(what).count();
    assert_eq!(count("No space left on device"), 1, "{log}");
    assert_eq!(count("os error 28"), 1, "{log}");
    assert!(last.contains("disk/data") && last.contains("make room"), "{log}");
}

#[test]
fn a_node_that_is_started_on_a_full_disk_tells_the_reason_once() {
    let Some(mut small) = SmallDisk::new() else { return };
    let node = small.start("{ cat /dev/zero > disk/filler; } 2> /dev/null; exec SERVE");
    assert_told_once(&small, node);
}

#[test]
fn a_node_that_was_killed_on_a_full_disk_tells_the_reason_once() {
    let Some(mut small) = SmallDisk::new() else { return };
    let node = small.start(
        "{ SERVE & until [ -e disk/data/epoch ]; do sleep 0.05; done; kill -9 $!; wait $!; \
         cat /dev/zero > disk/filler; } > /dev/null 2>&1; exec SERVE",
    );
    assert_told_once(&small, node);
}
