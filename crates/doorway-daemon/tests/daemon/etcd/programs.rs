//! Real etcd clients, as they are.
//!
//! `cargo xtask test` installs them and runs these tests. `ETCDCTL` names several versions of
//! etcdctl, with colons between their paths. `ETCD_PYTHON` is a Python with aetcd and etcd3gw,
//! `ETCETRA_PYTHON` one with etcetra, and `REFLECTION_PYTHON` one with grpcio-reflection.
//! `ETCD_RS` is a program with the crate `etcd-client` (`xtask/etcd_rs`). `ETCD_ENTRIES=1000` lets
//! each client enter a contended lock that often.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::group::Nodes;
use crate::common::daemon::{Daemon, signal};
use crate::common::{PATIENCE, Place, addresses, group, until};

/// The versions of etcdctl.
fn versions() -> Vec<String> {
    let versions = std::env::var("ETCDCTL").unwrap_or_else(|_| "etcdctl".to_owned());
    versions.split(':').map(str::to_owned).collect()
}

/// The program that a variable of the environment names.
fn program(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names a program"))
}

/// A node that serves etcd clients at this address.
fn node() -> (Daemon, String) {
    let address = addresses(1).remove(0);
    (group::remote(&format!("[etcd]\nlisten = \"{address}\"\n")), address)
}

fn etcdctl(program: &str, place: &Path, endpoints: &[&str], words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", program, "--endpoints", &endpoints.join(",")]);
    for (option, file) in [("--cacert", "ca.crt"), ("--cert", "ci.crt"), ("--key", "ci.key")] {
        command.arg(option).arg(place.join(file));
    }
    command.args(words).env("ETCDCTL_API", "3").env_remove("ETCDCTL");
    command
}

fn text(run: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    format!("{out}{err}")
}

fn run(command: &mut Command) -> String {
    let run = command.output().expect("it runs");
    assert!(run.status.success(), "{command:?}: {}", text(&run));
    String::from_utf8_lossy(&run.stdout).into_owned()
}

/// The fence of a run that has printed it.
fn fence(said: &str) -> u64 {
    let line = said.lines().find_map(|line| line.strip_prefix("ETCD_LOCK_REV="));
    line.and_then(|fence| fence.parse().ok()).unwrap_or_else(|| panic!("{said}"))
}

#[test]
#[ignore = "it needs etcdctl"]
fn etcdctl_locks_elects_and_keeps_leases() {
    let (daemon, address) = node();
    let place = daemon.place.path();
    let mut last = 0;
    for program in versions() {
        let ctl = |words: &[&str]| etcdctl(&program, place, &[&address], words);
        let said = run(&mut ctl(&["lock", "l", "--", "env"]));
        assert!(said.contains("ETCD_LOCK_KEY=l/"), "{said}");
        assert!(fence(&said) > last, "{said}");
        last = fence(&said);
        // A command that fails ends with its own status, and the lock is free again.
        let failed = ctl(&["lock", "l", "--", "false"]).output().expect("it runs");
        assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
        let granted = run(&mut ctl(&["lease", "grant", "30"]));
        let lease = granted.split(' ').nth(1).expect("a lease").to_owned();
        let times = run(&mut ctl(&["lease", "timetolive", &lease]));
        assert!(times.contains("granted with TTL(30s)"), "{times}");
        let alive = run(&mut ctl(&["lease", "keep-alive", "--once", &lease]));
        assert!(alive.contains("TTL(30)"), "{alive}");
        run(&mut ctl(&["lease", "revoke", &lease]));
        assert!(!ctl(&["lease", "revoke", &lease]).status().expect("it runs").success());
        let other = ctl(&["put", "k", "v"]).output().expect("it runs");
        assert!(!other.status.success() && text(&other).contains("creates none"));
        let mut leader = Background::new(&mut ctl(&["elect", &format!("e{last}"), "me"]), place);
        leader.until("me");
        let seen = Background::new(&mut ctl(&["elect", "-l", &format!("e{last}")]), place);
        seen.until("me");
        let mut next = Background::new(&mut ctl(&["elect", &format!("e{last}"), "you"]), place);
        // That nothing happens can only be seen by waiting.
        thread::sleep(Duration::from_millis(300));
        assert!(!next.said().contains("you"), "there is one leader");
        signal(&leader.child, Signal::INT);
        let _ = leader.child.wait();
        next.until("you");
        seen.until("you");
        let _ = next.child.kill();
    }
}

/// A program that runs, and writes what it says into a file.
struct Background {
    child: Child,
    file: PathBuf,
}

impl Background {
    fn new(command: &mut Command, place: &Path) -> Self {
        let file = place.join(crate::common::fresh());
        let out = fs::File::create(&file).expect("a file");
        // Without `timeout`, so that signals reach the program itself.
        let words: Vec<_> = command.get_args().skip(1).map(ToOwned::to_owned).collect();
        let mut direct = Command::new(&words[0]);
        direct.args(&words[1..]).env("ETCDCTL_API", "3").env_remove("ETCDCTL");
        let child = direct.stdout(out).stderr(Stdio::null()).spawn().expect("it runs");
        Self { child, file }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.file).unwrap_or_default()
    }

    fn until(&self, line: &str) {
        until(line, || self.said().lines().any(|said| said == line));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that holds a lock until it is killed, and says `in` when it has the lock.
struct HoldingClient {
    name: String,
    /// Whether a request of it waits at a node. The others ask again and again, or watch.
    waits_at_node: bool,
    /// Whether it sends heartbeats.
    beats: bool,
    /// Makes the command. Its argument is the node that the client knows first.
    command: Box<dyn Fn(usize) -> Command + Send>,
}

/// One client of each kind, each with a lock of its own, which is called as the client.
fn holding_clients(place: &Path, addresses: &[String], sockets: &[String]) -> Vec<HoldingClient> {
    let from = |addresses: &[String], node: usize| {
        let mut all = addresses.to_vec();
        all.rotate_left(node % addresses.len());
        all
    };
    let mut clients = Vec::new();
    for (version, program) in versions().into_iter().enumerate() {
        let name = format!("etcdctl-{version}");
        let (place, addresses, lock) = (place.to_owned(), addresses.to_owned(), name.clone());
        let command = move |node| {
            let all = from(&addresses, node);
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let words = ["lock", "--ttl", "5", &lock, "--", "sh", "-c", "echo in; exec sleep 60"];
            etcdctl(&program, &place, &all, &words)
        };
        let command = Box::new(command);
        clients.push(HoldingClient { name, waits_at_node: true, beats: true, command });
    }
    let (rust, there) = (program("ETCD_RS"), (addresses.to_owned(), place.to_owned()));
    let command = Box::new(move |node| {
        let (addresses, place) = &there;
        let mut command = Command::new("timeout");
        command.args(["60", &rust, "hold", &from(addresses, node).join(",")]);
        command.arg(place).arg("etcd-rs");
        command
    });
    let name = "etcd-rs".to_owned();
    clients.push(HoldingClient { name, waits_at_node: true, beats: false, command });
    for (client, variable) in PYTHON_CLIENTS {
        let (addresses, sockets) = (addresses.to_owned(), sockets.to_owned());
        let more = [place.to_owned(), client.into()];
        let command = Box::new(move |node: usize| {
            let node = node % addresses.len();
            let more = [&more[0], &more[1]];
            python(client, variable, "hold", &addresses[node], &sockets[node], &more)
        });
        let waits_at_node = client == "etcetra";
        let name = client.to_owned();
        clients.push(HoldingClient { name, waits_at_node, beats: false, command });
    }
    clients
}

/// The holder is killed while one client waits that is interrupted. Then another one gets in.
fn kill_a_holder(client: &HoldingClient, place: &Path, node: &Daemon) {
    let HoldingClient { name, waits_at_node, beats, command } = client;
    let mut holder = Background::new(&mut command(0), place);
    holder.until("in");
    let entered = Instant::now();
    let report = || node.client().inspect(name).expect("a report");
    let fence = report().holders[0].fence;
    let mut waiter = Background::new(&mut command(1), place);
    if *waits_at_node {
        until("it waits", || report().waiters.len() == 1);
    } else {
        thread::sleep(Duration::from_secs(1));
    }
    signal(&waiter.child, Signal::INT);
    let _ = waiter.child.wait();
    until("it waits no longer", || report().waiters.is_empty());
    // On a machine that is busy enough, a lease of 15 s that nobody renews is over by now.
    let is_held = *beats || entered.elapsed() < Duration::from_secs(12);
    let _ = holder.child.kill();
    let _ = holder.child.wait();
    let killed = Instant::now();
    let next = Background::new(&mut command(2), place);
    next.until("in");
    let took = killed.elapsed();
    assert!(!beats || took > Duration::from_secs(2), "{name}: the lease was not over: {took:?}");
    let held = report().holders;
    assert!(held.len() == 1 && held[0].fence > fence, "{name}: {held:?} after {fence}");
    assert!(waiter.said().is_empty() || !is_held, "{name}: it was never inside");
}

fn kill_holders(place: &Path, addresses: &[String], sockets: &[String], node: &Daemon) {
    thread::scope(|scope| {
        for client in holding_clients(place, addresses, sockets) {
            scope.spawn(move || kill_a_holder(&client, place, node));
        }
    });
}

#[test]
#[ignore = "it needs etcdctl, aetcd, etcd3gw, etcetra and etcd-client"]
fn a_killed_holder_loses_its_lock_and_an_interrupted_client_waits_no_longer() {
    let (daemon, address) = node();
    let sockets = [daemon.socket.clone()];
    kill_holders(daemon.place.path(), &[address], &sockets, &daemon);
}

#[test]
#[ignore = "it needs etcdctl, aetcd, etcd3gw, etcetra and etcd-client"]
fn a_killed_holder_at_one_of_three_nodes_loses_its_lock() {
    let Nodes { group, addresses } = Nodes::start();
    let sockets: Vec<String> = group.nodes.iter().map(|it| it.socket.clone()).collect();
    kill_holders(group.place.path(), &addresses, &sockets, &group.nodes[0]);
}

/// How often each client enters the contended lock at least, unless `ETCD_ENTRIES` says otherwise.
const ENTRIES: usize = 20;

/// Makes the command that enters the lock once. Its argument counts the attempts of the client.
type Worker = Box<dyn Fn(usize) -> Command + Send>;

/// One line that a worker wrote: whether it went in or out, its fence, and when.
#[derive(Debug)]
struct Line {
    inside: bool,
    fence: u64,
    at: u128,
    who: String,
}

/// Check that the workers were inside one after another, and that their fences grew.
fn judge(log: &Path) -> Vec<Line> {
    let log = fs::read_to_string(log).expect("somebody was inside");
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap_or_else(|| panic!("{line:?}")).to_owned();
        let (what, fence, at, who) = (next(), next(), next(), next());
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{line:?}"));
        Line { inside: what == "in", fence: number(&fence) as u64, at: number(&at), who }
    };
    let mut lines: Vec<Line> = log.lines().map(line).collect();
    lines.sort_by_key(|line| line.at);
    let mut last = 0;
    for pair in lines.chunks(2) {
        let [one, other] = pair else { panic!("somebody is still inside: {pair:?}") };
        assert!(one.inside && !other.inside, "two are inside: {one:?}, {other:?}");
        assert_eq!(one.fence, other.fence, "two are inside: {one:?}, {other:?}");
        assert!(one.fence > last, "the fence did not grow: {last}, {one:?}");
        last = one.fence;
    }
    lines
}

/// The clients that take part: etcdctl of each version, this many of it, and one of each other
/// kind. They know the nodes at these addresses and sockets, and write into this log.
fn workers(
    etcdctls: usize,
    place: &Path,
    addresses: &[String],
    sockets: &[String],
    log: &Path,
) -> Vec<(String, Worker)> {
    let inside = format!(
        "echo in $ETCD_LOCK_REV $(date +%s%N) $0 >> {log}; sleep 0.02; \
         echo out $ETCD_LOCK_REV $(date +%s%N) $0 >> {log}",
        log = log.display()
    );
    // Each attempt begins with another node, and knows one, two or all of them.
    let some = |addresses: &[String], attempt: usize| {
        let mut all = addresses.to_vec();
        all.rotate_left(attempt % addresses.len());
        all.truncate(1 + attempt / addresses.len() % addresses.len());
        all
    };
    let mut workers: Vec<(String, Worker)> = Vec::new();
    for (version, program) in versions().into_iter().enumerate() {
        for shift in 0..etcdctls {
            let name = format!("etcdctl-{version}-{shift}");
            let (place, program) = (place.to_owned(), program.clone());
            let (addresses, inside, who) = (addresses.to_owned(), inside.clone(), name.clone());
            workers.push((
                name,
                Box::new(move |attempt| {
                    let all = some(&addresses, attempt + shift);
                    let all: Vec<&str> = all.iter().map(String::as_str).collect();
                    let words = ["lock", "--ttl", "5", "shared", "--", "sh", "-c", &inside, &who];
                    etcdctl(&program, &place, &all, &words)
                }),
            ));
        }
    }
    let there = (addresses.to_owned(), place.to_owned(), log.to_owned());
    let rust = program("ETCD_RS");
    workers.push((
        "etcd-rs".to_owned(),
        Box::new(move |attempt| {
            let (addresses, place, log) = &there;
            let mut command = Command::new("timeout");
            command.args(["60", &rust, "enter", &some(addresses, attempt).join(",")]);
            command.arg(place).arg(log).arg("etcd-rs");
            command
        }),
    ));
    for (client, variable) in PYTHON_CLIENTS {
        let (place, log) = (place.to_owned(), log.to_owned());
        let (addresses, sockets) = (addresses.to_owned(), sockets.to_owned());
        workers.push((
            client.to_owned(),
            Box::new(move |attempt| {
                // These clients know one node at a time.
                let node = attempt % addresses.len();
                let more = [&place, &log];
                python(client, variable, "enter", &addresses[node], &sockets[node], &more)
            }),
        ));
    }
    workers
}

/// The clients in Python, and the variable that names a Python with it.
const PYTHON_CLIENTS: [(&str, &str); 3] =
    [("aetcd", "ETCD_PYTHON"), ("etcd3gw", "ETCD_PYTHON"), ("etcetra", "ETCETRA_PYTHON")];

/// A client in Python that does something at a node.
fn python(
    client: &str,
    variable: &str,
    what: &str,
    address: &str,
    socket: &str,
    more: &[&PathBuf],
) -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", &program(variable), "-B"]).arg(script("clients.py"));
    command.args([client, what, address, socket]).args(more);
    command
}

fn wanted() -> usize {
    std::env::var("ETCD_ENTRIES").map_or(ENTRIES, |it| it.parse().expect("a number"))
}

#[test]
#[ignore = "it needs etcdctl, aetcd, etcd3gw, etcetra and etcd-client"]
fn clients_of_three_nodes_exclude_each_other_while_nodes_are_killed() {
    let mut nodes = Nodes::start();
    let place = nodes.group.place.path().to_owned();
    let log = place.join("log");
    let sockets: Vec<String> = nodes.group.nodes.iter().map(|it| it.socket.clone()).collect();
    let workers = workers(3, &place, &nodes.addresses, &sockets, &log);
    let failures = work(workers, wanted(), &log, Some(&mut nodes));
    report(&log, wanted(), &failures);
}

#[test]
#[ignore = "it needs etcdctl, aetcd, etcd3gw, etcetra and etcd-client"]
fn clients_of_one_node_exclude_each_other() {
    let (daemon, address) = node();
    let place = daemon.place.path();
    let log = place.join("log");
    let sockets = [daemon.socket.clone()];
    let workers = workers(1, place, &[address], &sockets, &log);
    let failures = work(workers, wanted(), &log, None);
    report(&log, wanted(), &failures);
    assert!(failures.iter().all(|(_, failed)| *failed == 0), "{failures:?}");
}

/// Print how often each client has entered and how often it failed. Each has to have entered often
/// enough.
fn report(log: &Path, wanted: usize, failures: &[(String, usize)]) {
    let lines = judge(log);
    for (name, failed) in failures {
        let entries = lines.iter().filter(|line| line.inside && line.who == *name).count();
        println!("{name}: {entries} entries, {failed} failures");
        assert!(entries >= wanted, "{entries} entries of {name}");
    }
}

/// Let workers enter again and again. If there are nodes to be killed, kill one after another
/// meanwhile. A client that only tries, such as etcd3gw, may not get in while the others wait for
/// the lock all the time. So when the clients that wait have entered often enough, they leave the
/// lock to the others. Returns how often each client failed.
fn work(
    workers: Vec<(String, Worker)>,
    wanted: usize,
    log: &Path,
    mut killed: Option<&mut Nodes>,
) -> Vec<(String, usize)> {
    let (begun, enough) = (Instant::now(), AtomicBool::new(killed.is_none()));
    let working = AtomicUsize::new(workers.len());
    let patience = 2 * PATIENCE + wanted as u32 * Duration::from_secs(2);
    let entries = |name: &str| {
        let text = fs::read_to_string(log).unwrap_or_default();
        let own = |line: &&str| line.starts_with("in ") && line.ends_with(name);
        text.lines().filter(own).count()
    };
    thread::scope(|scope| {
        let workers: Vec<_> = workers
            .into_iter()
            .map(|(name, worker)| {
                let (enough, working, entries) = (&enough, &working, &entries);
                scope.spawn(move || {
                    let is_done = || enough.load(Ordering::Relaxed) && entries(&name) >= wanted;
                    let mut failed = 0;
                    for attempt in 0.. {
                        if is_done() || begun.elapsed() > patience {
                            break;
                        }
                        // A client of a node that was killed may fail.
                        let said = match worker(attempt).output() {
                            Ok(run) if run.status.success() => continue,
                            Ok(run) => format!("{}: {}", run.status, text(&run)),
                            Err(error) => error.to_string(),
                        };
                        if failed == 0 {
                            println!("{name} failed for the first time: {said}");
                        }
                        failed += 1;
                    }
                    working.fetch_sub(1, Ordering::Relaxed);
                    (name, failed)
                })
            })
            .collect();
        if let Some(nodes) = &mut killed {
            kill_one_after_another(nodes, &working, &enough);
        }
        workers.into_iter().map(|worker| worker.join().expect("it ends")).collect()
    })
}

/// Kill one node after another while there are workers. After six of them that is enough.
fn kill_one_after_another(nodes: &mut Nodes, working: &AtomicUsize, enough: &AtomicBool) {
    for round in 0.. {
        if round >= 6 {
            enough.store(true, Ordering::Relaxed);
        }
        if working.load(Ordering::Relaxed) == 0 {
            break;
        }
        // The programs work for a while with all nodes, and then without one.
        thread::sleep(Duration::from_secs(3));
        let node = &mut nodes.group.nodes[round % 3];
        node.kill();
        thread::sleep(Duration::from_millis(300));
        node.spawn();
        node.ready();
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/etcd").join(name)
}

#[test]
#[ignore = "it needs aetcd, etcd3gw and etcetra"]
fn python_clients_lock() {
    let (daemon, address) = node();
    let place = daemon.place.path().to_owned();
    for (client, variable) in PYTHON_CLIENTS {
        let more = [&place];
        let mut check = python(client, variable, "check", &address, &daemon.socket, &more);
        let said = run(&mut check);
        assert!(said.contains("all is well"), "{said}");
    }
}

#[test]
#[ignore = "it needs the crate etcd-client"]
fn the_rust_client_locks() {
    let nodes = Nodes::start();
    let all = nodes.addresses.join(",");
    for endpoints in [&nodes.addresses[0], &all] {
        let mut command = Command::new("timeout");
        command.args(["60", &program("ETCD_RS"), "check", endpoints]);
        let said = run(command.arg(nodes.group.place.path()));
        assert!(said.contains("all is well"), "{said}");
    }
}

#[test]
#[ignore = "it needs grpcio-reflection"]
fn a_tool_learns_the_calls_from_the_node() {
    let (daemon, _) = node();
    let mut command = Command::new("timeout");
    command.args(["60", &program("REFLECTION_PYTHON"), "-B"]).arg(script("reflection.py"));
    let said = run(command.arg(&daemon.socket));
    assert!(said.contains("all is well"), "{said}");
}

#[test]
#[ignore = "it needs etcdctl and curl"]
fn the_examples_of_the_page_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/etcd.md");
    let page = fs::read_to_string(page).expect("the page");
    let blocks = |kind: &str| -> Vec<String> {
        let begin = format!("```{kind}\n");
        let parts = page.split(&begin).skip(1);
        parts.map(|part| part.split("```").next().expect("an end").to_owned()).collect()
    };
    for version in versions() {
        let place = Arc::new(Place::new());
        let socket = place.file("socket").display().to_string();
        let address = addresses(1).remove(0);
        let settings = format!("[etcd]\nlisten = \"{address}\"\n");
        let _daemon = group::remote_at(&socket, &place, &settings);
        for kind in ["crt", "key"] {
            let of = |name: &str| place.file(&format!("{name}.{kind}"));
            fs::copy(of("ci"), of("reports")).expect("the certificate of the client");
        }
        let directory = place.path().display().to_string();
        let script = format!("set -eu\n{}", blocks("sh").join("\n"));
        let script = script.replace("127.0.0.1:2379", &address).replace("/run/doorway", &directory);
        let bin = Path::new(&version).parent().map(|it| it.display().to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("timeout");
        shell.args(["60", "sh", "-c", &script]).current_dir(place.path());
        shell.env("PATH", format!("{}:{path}", bin.unwrap_or_default())).env_remove("ETCDCTL");
        let run = shell.output().expect("it runs");
        let said = text(&run);
        assert!(run.status.success(), "{said}");
        // Fences differ from run to run.
        let same = |text: &str| {
            let line = text.lines().next().unwrap_or_default();
            line.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned()
        };
        assert_eq!(same(&said), same(&blocks("text").concat()), "{said}");
        assert!(said.contains("inside again") && said.contains("\"revision\":"), "{said}");
    }
}

#[test]
#[ignore = "it needs etcdctl and etcd3gw"]
fn the_programs_of_the_page_about_clients_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients.md");
    let page = fs::read_to_string(page).expect("the page");
    let (daemon, address) = node();
    let python = program("ETCD_PYTHON");
    for (kind, words) in
        [("sh etcdctl", ["sh", "-euc"]), ("python etcd3gw", [python.as_str(), "-c"])]
    {
        let blocks: Vec<&str> = page.split(&format!("```{kind}\n")).skip(1).collect();
        let [block] = blocks[..] else { panic!("{} blocks of {kind}", blocks.len()) };
        let block = block.split("```").next().expect("an end");
        let (host, port) = address.split_once(':').expect("a port");
        let block = block.replace("locks.example", host).replace("2379", port);
        let mut command = Command::new("timeout");
        command.arg("30").args(words).arg(block).env_remove("ETCDCTL");
        // Otherwise the library of etcd3gw does not look at the certificate that it is given.
        command.env_remove("REQUESTS_CA_BUNDLE").env_remove("CURL_CA_BUNDLE");
        let said = run(command.current_dir(daemon.place.path()));
        assert!(said.contains("inside, with fence "), "{said}");
    }
}
