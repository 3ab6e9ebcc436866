//! Machines of a group that agrees on its members, all on this one.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::{DOORWAY, Place, Process, until};

/// The shortest lease that a group may have.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// The names of the machines.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Four machines, of which the first three are to found the group.
pub(crate) struct Group {
    pub(crate) place: Place,
    addresses: Vec<String>,
    pub(crate) nodes: Vec<Option<Process>>,
}

impl Group {
    /// Certificates and settings for all machines. None of them runs yet.
    pub(crate) fn new() -> Self {
        let place = Place::empty();
        let ca = |words: &str| {
            let mut command = Command::new(DOORWAY);
            command.args(["ca"]).args(words.split(' ')).current_dir(&place.directory);
            let done = command.output().expect("it runs");
            assert!(done.status.success(), "{words}: {done:?}");
        };
        ca("init --group shop --dir ca");
        for name in NAMES {
            ca(&format!("node {name} --dir ca"));
        }
        let ports = NAMES.map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let addresses = ports.map(|port| port.local_addr().expect("its number").to_string());
        let group =
            Self { place, addresses: addresses.to_vec(), nodes: vec![None, None, None, None] };
        (0..NAMES.len()).for_each(|node| group.agree(node, &[0, 1, 2]));
        group
    }

    /// Three nodes that run with a fixed list of members.
    pub(crate) fn fixed() -> Self {
        let mut group = Self::new();
        for node in 0..3 {
            group.fix(node);
            group.start(node);
        }
        group
    }

    /// Settings for a machine of a group that agrees on its members, with these ones in `join`.
    pub(crate) fn agree(&self, node: usize, join: &[usize]) {
        let join: Vec<String> =
            join.iter().map(|other| format!("\"{}\"", self.addresses[*other])).collect();
        let (address, join) = (self.address(node), join.join(", "));
        let members =
            format!("[members]\naddress = \"{address}\"\njoin = [{join}]\nlease = \"2s\"\n");
        self.configure(node, &members);
    }

    /// Settings for a machine of a group with a fixed list of members.
    pub(crate) fn fix(&self, node: usize) {
        let member =
            |(name, address)| format!("[[member]]\nname = \"{name}\"\naddress = \"{address}\"\n");
        let members: String = NAMES.iter().zip(&self.addresses).take(3).map(member).collect();
        self.configure(node, &members);
    }

    /// Settings for a machine, with this about its group.
    pub(crate) fn configure(&self, node: usize, members: &str) {
        let (name, socket) = (NAMES[node], self.socket(node));
        let text = format!(
            "group = \"shop\"\nnode = \"{name}\"\nsocket = \"{socket}\"\ndata = \"{name}\"\n{members}\
             [links]\nheartbeat = \"100ms\"\nsilence = \"1s\"\n\
             [tls]\nca = \"ca/ca.crt\"\ncertificate = \"ca/{name}.crt\"\nkey = \"ca/{name}.key\"\n"
        );
        fs::write(self.place.file(&format!("{name}.toml")), text).expect("a file");
    }

    /// The fence of a grant of this lock, which is released at once.
    pub(crate) fn fence(&self, node: usize, name: &str) -> u64 {
        let mut command = self.command(node, &format!("run -w 60 {name} -- sh -c"));
        let done = command.arg("echo $DOORWAY_FENCE").output().expect("it runs");
        let fence = String::from_utf8(done.stdout).expect("text");
        fence.trim().parse().expect("a fence")
    }

    /// Why a node does not start.
    pub(crate) fn not_started(&self, node: usize) -> String {
        let done = self.output(node, &format!("serve --config {}.toml", NAMES[node]));
        assert!(!done.status.success(), "{done:?}");
        String::from_utf8(done.stderr).expect("text")
    }

    /// Three machines that have founded their group and are in one view.
    pub(crate) fn founded() -> Self {
        let mut group = Self::new();
        (0..3).for_each(|node| group.start(node));
        group.answer(0, "members init");
        (0..3).for_each(|node| group.complete(node));
        group
    }

    pub(crate) fn address(&self, node: usize) -> &str {
        &self.addresses[node]
    }

    pub(crate) fn socket(&self, node: usize) -> String {
        format!("{}-{}", self.place.socket(), NAMES[node])
    }

    /// Start a machine, and wait until its node answers.
    pub(crate) fn start(&mut self, node: usize) {
        let name = NAMES[node];
        let log = self.place.file(&format!("{name}.log"));
        let log = fs::File::options().create(true).append(true).open(log).expect("a log");
        let mut serve = Command::new(DOORWAY);
        serve.args(["serve", "--config"]).arg(self.place.file(&format!("{name}.toml")));
        self.nodes[node] = Some(Process::spawn(serve.stdin(Stdio::null()).stderr(log)));
        until("the node answers", || self.output(node, "status").status.success());
    }

    /// Kill a node, as a power cut would.
    pub(crate) fn kill(&mut self, node: usize) {
        let process = self.nodes[node].take().expect("it runs");
        process.signal("KILL");
        process.end();
    }

    /// Stop a node gracefully.
    pub(crate) fn stop(&mut self, node: usize) {
        let process = self.nodes[node].take().expect("it runs");
        process.signal("TERM");
        let status = process.end();
        assert!(status.success(), "{status}");
    }

    /// Take away the disk of a machine that does not run.
    pub(crate) fn wipe(&self, node: usize) {
        fs::remove_dir_all(self.place.file(NAMES[node])).expect("its data");
    }

    /// `doorway` with these words, at the node of a machine.
    pub(crate) fn command(&self, node: usize, words: &str) -> Command {
        let mut command = self.place.command(words.split_whitespace());
        command.env("DOORWAY_SOCKET", self.socket(node)).current_dir(&self.place.directory);
        command
    }

    /// `doorway run` with these words and then this line for a shell, at the node of a machine.
    pub(crate) fn run(&self, node: usize, words: &str, line: &str) -> Process {
        let mut command = self.command(node, &format!("run {words} -- sh -c"));
        Process::spawn(command.arg(line))
    }

    pub(crate) fn output(&self, node: usize, words: &str) -> Output {
        self.command(node, words).output().expect("it runs")
    }

    /// What a command prints that succeeds.
    pub(crate) fn answer(&self, node: usize, words: &str) -> String {
        let done = self.output(node, words);
        assert!(done.status.success() && done.stderr.is_empty(), "{words}: {done:?}");
        String::from_utf8(done.stdout).expect("text")
    }

    /// The line with which a command fails that prints nothing else.
    pub(crate) fn mistake(&self, node: usize, words: &str, code: i32) -> String {
        let done = self.output(node, words);
        let said = String::from_utf8(done.stderr).expect("text");
        assert_eq!(done.status.code(), Some(code), "{words}: {said}");
        assert!(done.stdout.is_empty() && said.lines().count() == 1, "{words}: {said}");
        said
    }

    /// What a node reports about the members.
    pub(crate) fn members(&self, node: usize) -> Value {
        serde_json::from_str(&self.answer(node, "members --json")).expect("JSON")
    }

    /// Wait until a node sees all machines in the view.
    pub(crate) fn complete(&self, node: usize) {
        let done = self.output(node, "members --wait 60");
        assert!(done.status.success(), "{done:?}");
    }

    /// Wait until a node sees this many machines in the view that runs there.
    pub(crate) fn seated(&self, node: usize, count: usize) {
        until("the view has so many members", || {
            let report = self.members(node);
            let seats = report["seats"].as_array().expect("seats").iter();
            let seated = seats.filter(|seat| seat["state"] == "in-view").count();
            seated == count && report["running"] == report["view"]
        });
    }

    /// Take a lock for a moment. Returns how long that took.
    pub(crate) fn lock(&self, node: usize, name: &str) -> Duration {
        let begin = Instant::now();
        let done = self.output(node, &format!("run -w 60 {name} -- true"));
        assert!(done.status.success(), "{done:?}");
        begin.elapsed()
    }

    /// The response to `GET`, at the Unix socket of a node.
    pub(crate) fn get(&self, node: usize, path: &str) -> String {
        let socket = self.socket(node);
        let name = socket.strip_prefix('@').expect("an abstract socket");
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        let mut stream = UnixStream::connect_addr(&address).expect("a node that listens");
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("a response");
        text
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in NAMES {
                let log = fs::read_to_string(self.place.file(&format!("{name}.log")));
                eprintln!("the log of {name}:\n{}", log.unwrap_or_default());
            }
        }
    }
}
