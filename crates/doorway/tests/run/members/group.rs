//! Machines of a group that agrees on its members, all on this one or in network namespaces of it.

#![allow(dead_code, reason = "tests, faults and benchmark each take what they need")]

use std::ffi::OsStr;
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

/// A machine that a node may run on.
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    /// Where the other members find its node.
    pub(crate) address: String,
    /// The words before a command that runs on this machine: none if it is this one.
    pub(crate) enter: Vec<String>,
}

impl Machine {
    /// The names of machines, in their order.
    pub(crate) const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    /// This many machines, all on this one.
    pub(crate) fn local(count: usize) -> Vec<Self> {
        let names = &Self::NAMES[..count];
        // All ports are bound before the first one is free again, so that they differ.
        let ports: Vec<_> =
            names.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let address = |port: TcpListener| port.local_addr().expect("its number").to_string();
        let machine = |(name, port): (&&'static str, TcpListener)| Self {
            name,
            address: address(port),
            enter: vec![],
        };
        names.iter().zip(ports).map(machine).collect()
    }

    /// A program that runs on this machine.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let Some((first, rest)) = self.enter.split_first() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }
}

/// How soon the machines of a group notice that one of them is silent, as lines of settings.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    lease: &'static str,
    links: &'static str,
}

impl Pace {
    /// As soon as settings allow.
    pub(crate) const QUICK: Self = Self {
        lease: "lease = \"2s\"\n",
        links: "[links]\nheartbeat = \"100ms\"\nsilence = \"1s\"\n",
    };

    /// Links as quick as settings allow, and a lease that lasts while nodes are started again on a
    /// machine that has much else to do. For tests in which no lease has to end.
    pub(crate) const PATIENT: Self = Self { lease: "lease = \"30s\"\n", ..Self::QUICK };

    /// Links as quick as settings allow, and a lease of which a node can promise a part to clients
    /// that count in whole seconds.
    pub(crate) const LONGER: Self = Self { lease: "lease = \"5s\"\n", ..Self::QUICK };

    /// As with no settings about it.
    pub(crate) const DEFAULT: Self = Self { lease: "", links: "" };
}

/// The machines of a group.
pub(crate) struct Group {
    pub(crate) place: Place,
    pub(crate) machines: Vec<Machine>,
    pub(crate) nodes: Vec<Option<Process>>,
    pace: Pace,
    /// The URL of the etcd by which the group agrees; none if it agrees by Raft.
    etcd: Option<String>,
}

impl Group {
    /// Four machines, of which the first three are to found the group.
    pub(crate) fn new() -> Self {
        Self::on(Machine::local(4), 3, Pace::QUICK)
    }

    /// Four machines that agree by the etcd at this URL.
    pub(crate) fn by_etcd(url: &str, pace: Pace) -> Self {
        Self::make(Machine::local(4), 3, pace, Some(url.to_owned()))
    }

    /// Certificates and settings for all machines, of which the first `founders` are to found the
    /// group. None of them runs yet.
    pub(crate) fn on(machines: Vec<Machine>, founders: usize, pace: Pace) -> Self {
        Self::make(machines, founders, pace, None)
    }

    fn make(machines: Vec<Machine>, founders: usize, speed: Pace, etcd: Option<String>) -> Self {
        let place = Place::empty();
        place.ca("init --group shop --dir ca");
        for Machine { name, .. } in &machines {
            place.ca(&format!("node {name} --dir ca"));
        }
        let nodes = machines.iter().map(|_| None).collect();
        let group = Self { place, machines, nodes, pace: speed, etcd };
        let join: Vec<usize> = (0..founders).collect();
        (0..group.machines.len()).for_each(|node| group.agree(node, &join));
        group
    }

    /// Three nodes that run with a fixed list of members.
    pub(crate) fn fixed() -> Self {
        Self::fixed_with("")
    }

    /// Three nodes that run with a fixed list of members and these rules for locks.
    pub(crate) fn fixed_with(rules: &str) -> Self {
        let mut group = Self::on(Machine::local(4), 3, Pace::PATIENT);
        (0..3).for_each(|node| group.fix(node));
        group.add_settings(rules);
        (0..3).for_each(|node| group.start(node));
        group
    }

    /// Settings for a machine of a group that agrees on its members, with these ones in `join`.
    pub(crate) fn agree(&self, node: usize, join: &[usize]) {
        let join: Vec<String> =
            join.iter().map(|other| format!("\"{}\"", self.address(*other))).collect();
        let (address, join, lease) = (self.address(node), join.join(", "), self.pace.lease);
        let etcd = self
            .etcd
            .as_ref()
            .map_or_else(String::new, |url| format!("agree = \"etcd\"\netcd = [\"{url}\"]\n"));
        let members = format!("[members]\naddress = \"{address}\"\njoin = [{join}]\n{lease}{etcd}");
        self.configure(node, &members);
    }

    /// Settings for a machine of a group with a fixed list of members.
    pub(crate) fn fix(&self, node: usize) {
        let member = |Machine { name, address, .. }: &Machine| {
            format!("[[member]]\nname = \"{name}\"\naddress = \"{address}\"\n")
        };
        let members: String = self.machines[..3].iter().map(member).collect();
        self.configure(node, &members);
    }

    /// Settings for a machine, with this about its group.
    pub(crate) fn configure(&self, node: usize, members: &str) {
        let (name, socket, links) = (self.name(node), self.socket(node), self.pace.links);
        let text = format!(
            "group = \"shop\"\nnode = \"{name}\"\nsocket = \"{socket}\"\ndata = \"{name}\"\n{members}\
             {links}[tls]\nca = \"ca/ca.crt\"\ncertificate = \"ca/{name}.crt\"\nkey = \"ca/{name}.key\"\n"
        );
        fs::write(self.place.file(&format!("{name}.toml")), text).expect("a file");
    }

    /// Add these lines to the settings of the first three machines.
    pub(crate) fn add_settings(&self, lines: &str) {
        for node in 0..3 {
            let file = self.place.file(&format!("{}.toml", self.name(node)));
            let text = fs::read_to_string(&file).expect("settings");
            fs::write(file, text + lines).expect("a file");
        }
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
        let done = self.output(node, &format!("serve --config {}.toml", self.name(node)));
        assert!(!done.status.success(), "{done:?}");
        String::from_utf8(done.stderr).expect("text")
    }

    /// Three machines that have founded their group and are in one view.
    pub(crate) fn founded() -> Self {
        Self::founded_at(Pace::QUICK)
    }

    /// Three machines with this pace that have founded their group and are in one view.
    pub(crate) fn founded_at(pace: Pace) -> Self {
        let mut group = Self::on(Machine::local(4), 3, pace);
        group.found(3);
        group
    }

    /// Start the first `founders` machines, found their group, and wait until all of them are in
    /// one view.
    pub(crate) fn found(&mut self, founders: usize) {
        (0..founders).for_each(|node| self.start(node));
        self.answer(0, "members init");
        (0..founders).for_each(|node| self.complete(node));
    }

    pub(crate) fn name(&self, node: usize) -> &'static str {
        self.machines[node].name
    }

    pub(crate) fn address(&self, node: usize) -> &str {
        &self.machines[node].address
    }

    pub(crate) fn socket(&self, node: usize) -> String {
        format!("{}-{}", self.place.socket(), self.name(node))
    }

    /// Start a machine, and wait until its node answers.
    pub(crate) fn start(&mut self, node: usize) {
        self.start_program(node, DOORWAY);
    }

    /// Start a node of this program, and wait until it answers.
    pub(crate) fn start_program(&mut self, node: usize, program: &str) {
        let name = self.name(node);
        let log = self.place.file(&format!("{name}.log"));
        let log = fs::File::options().create(true).append(true).open(log).expect("a log");
        let mut serve = self.machines[node].command(program);
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
        let data = self.place.file(self.name(node));
        for entry in fs::read_dir(&data).expect("its data") {
            let path = entry.expect("a file").path();
            let done =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            done.expect("its data");
        }
        // A mount point stays.
        let _ = fs::remove_dir(data);
    }

    /// `doorway` with these words, at the node of a machine.
    pub(crate) fn command(&self, node: usize, words: &str) -> Command {
        let mut command = self.machines[node].command(DOORWAY);
        command.args(words.split_whitespace()).env("DOORWAY_SOCKET", self.socket(node));
        command.current_dir(&self.place.directory).stdin(Stdio::null());
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

    /// The machine that leads, once there is one.
    pub(crate) fn leader(&self) -> usize {
        let mut leader = None;
        until("there is a leader", || {
            let report = self.members(0);
            let mut seats = report["seats"].as_array().expect("seats").iter();
            let name = seats.find(|seat| seat["role"] == "leader").map(|seat| &seat["name"]);
            let is_it = |machine: &Machine| name.is_some_and(|name| name == machine.name);
            leader = self.machines.iter().position(is_it);
            leader.is_some()
        });
        leader.expect("a leader")
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

    /// A connection to the Unix socket of a node on this machine.
    pub(crate) fn connect(&self, node: usize) -> UnixStream {
        let socket = self.socket(node);
        let name = socket.strip_prefix('@').expect("an abstract socket");
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        UnixStream::connect_addr(&address).expect("a node that listens")
    }

    /// The value of a counter in the metrics of a node.
    pub(crate) fn count(&self, node: usize, name: &str) -> u64 {
        let metrics = self.get(node, "/metrics");
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in\n{metrics}")).parse().expect("a number")
    }

    /// The response to `GET`, at the Unix socket of a node.
    pub(crate) fn get(&self, node: usize, path: &str) -> String {
        let mut stream = self.connect(node);
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
            for Machine { name, .. } in &self.machines {
                let log = fs::read_to_string(self.place.file(&format!("{name}.log")));
                eprintln!("the log of {name}:\n{}", log.unwrap_or_default());
            }
        }
    }
}
