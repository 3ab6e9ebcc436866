//! Redlock over the nodes of a group: several nodes say OK for the same value.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::client::Raw;
use super::locks::{ACQUIRE_ALL, EXTEND, EXTEND_ALL, RELEASE_ALL, number};
use crate::common::group::Group;
use crate::common::{addresses, until};

type Tls = Raw<StreamOwned<ClientConnection, TcpStream>>;

/// Three nodes that serve Redis clients over TCP.
struct Nodes {
    group: Group,
    addresses: Vec<String>,
}

impl Nodes {
    /// Three nodes with `redlock` and these additional settings.
    fn start(more: &str) -> Self {
        let addresses = addresses(3);
        let settings = |index: usize| {
            format!("{more}[redis]\nlisten = \"{}\"\nredlock = true\n", addresses[index])
        };
        Self { group: Group::start_each(settings), addresses }
    }

    fn connect(&self, node: usize) -> Tls {
        Raw::new(self.group.connect(&self.addresses[node]))
    }

    fn all(&self) -> [Tls; 3] {
        [0, 1, 2].map(|node| self.connect(node))
    }
}

#[test]
fn a_node_says_ok_once_for_a_grant_of_another_node() {
    let nodes = Nodes::start("");
    let [mut one, mut two, mut three] = nodes.all();
    assert_eq!(one.line("SET k mine NX PX 5000"), "+OK");
    assert_eq!(two.line("SET k mine NX PX 5000"), "+OK");
    assert_eq!(two.line("SET k yours NX PX 5000"), "nil");
    assert_eq!(three.line("SET k yours NX PX 5000"), "nil");
    assert_eq!(three.line("SET k mine NX PX 20000"), "+OK");
    assert!(number(&one.line("PTTL k")) > 15_000, "the lease lasts as long as the vote");
    for raw in [&mut one, &mut two, &mut three] {
        assert_eq!(raw.line("SET k mine NX PX 5000"), "nil", "a key is set once");
    }
    let fence = one.line("DOORWAY.FENCE k");
    for raw in [&mut one, &mut two, &mut three] {
        assert_eq!(raw.line("DOORWAY.FENCE k mine"), fence);
        assert_eq!(raw.line("DOORWAY.FENCE k yours"), "nil");
    }
    // The client of another user of the same value has nothing.
    let mut stranger = Raw::at(&nodes.group.nodes[1]);
    assert_eq!(stranger.line("SET k mine NX PX 5000"), "nil");
    assert_eq!(stranger.line("DELIFEQ k mine"), ":0");
    for raw in [&mut three, &mut two, &mut one] {
        assert_eq!(raw.ask(&["EVAL", EXTEND, "1", "k", "mine", "30000"]), ":1");
        assert_eq!(raw.ask(&["EVAL", EXTEND, "1", "k", "yours", "30000"]), ":0");
        assert!(number(&nodes.connect(0).line("PTTL k")) > 25_000);
        assert_eq!(raw.ask(&["EVAL", EXTEND, "1", "k", "mine", "20000"]), ":1");
    }
    // Every node says once that the lock is released, whichever is asked first.
    for raw in [&mut two, &mut one, &mut three] {
        assert_eq!(raw.line("DELIFEQ k mine"), ":1");
        assert_eq!(raw.line("DELIFEQ k mine"), ":0");
    }
    assert_eq!(three.line("SET k yours NX PX 5000"), "+OK");
    for raw in [&mut one, &mut two, &mut three] {
        assert_eq!(raw.line("DOORWAY.FENCE k mine"), "nil");
    }
}

#[test]
fn a_value_is_confirmed_only_while_it_holds_the_lock() {
    let nodes = Nodes::start("");
    let [mut one, mut two, mut three] = nodes.all();
    assert_eq!(one.line("SET k mine NX PX 60000"), "+OK");
    assert_eq!(two.line("SET k mine NX PX 60000"), "+OK");
    assert_eq!(three.line("DEL k"), ":1", "an operator breaks it");
    assert_eq!(three.line("SET k yours NX PX 60000"), "+OK");
    assert_eq!(one.line("SET k mine NX PX 60000"), "nil");
    assert_eq!(two.line("SET k mine NX PX 60000"), "nil");
    for raw in [&mut one, &mut two] {
        assert_eq!(raw.line("DOORWAY.FENCE k mine"), "nil");
        assert_eq!(raw.ask(&["EVAL", EXTEND, "1", "k", "mine", "9000"]), ":0");
        assert_eq!(raw.line("DELIFEQ k mine"), ":0");
    }
    assert_eq!(one.line("GET k"), "\"yours\"");
    // A lease that ends by itself is the end of the votes, too.
    assert_eq!(one.line("SET l mine NX PX 600"), "+OK");
    assert_eq!(two.line("SET l mine NX PX 600"), "+OK");
    until("the lease ends", || three.line("SET l yours NX PX 60000") == "+OK");
    assert_eq!(two.line("SET l mine NX PX 60000"), "nil");
    assert_eq!(two.line("DELIFEQ l mine"), ":0");
}

#[test]
fn several_keys_count_at_every_node() {
    let nodes = Nodes::start("");
    let [mut one, mut two, mut three] = nodes.all();
    let all = |script, value, ttl| ["EVAL", script, "3", "a", "b", "c", value, ttl];
    for raw in [&mut one, &mut two, &mut three] {
        assert_eq!(raw.ask(&all(ACQUIRE_ALL, "mine", "20000")), ":3");
    }
    assert_eq!(two.ask(&all(ACQUIRE_ALL, "yours", "20000")), ":0");
    for raw in [&mut one, &mut two, &mut three] {
        assert_eq!(raw.ask(&all(EXTEND_ALL, "mine", "30000")), ":3");
    }
    // A key that is not free undoes the votes for the others, and not their leases.
    assert_eq!(three.line("SET x yours NX PX 20000"), "+OK");
    assert_eq!(one.line("SET d mine NX PX 20000"), "+OK");
    assert_eq!(two.ask(&["EVAL", ACQUIRE_ALL, "2", "d", "x", "mine", "20000"]), ":0");
    assert_eq!(two.line("DELIFEQ d mine"), ":0", "it has no vote");
    assert_eq!(one.line("GET d"), "\"mine\"");
    for raw in [&mut three, &mut two, &mut one] {
        assert_eq!(raw.ask(&all(RELEASE_ALL, "mine", "")[..7]), ":3");
    }
    assert_eq!(two.line("EXISTS a b c"), ":0");
}

/// Every OK is checked, and not only a majority of them.
#[test]
fn two_values_never_hold_a_lock_together() {
    let nodes = Nodes::start("");
    let (inside, entries, shared) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for worker in 0..4 {
            let (nodes, inside, entries, shared) = (&nodes, &inside, &entries, &shared);
            scope.spawn(move || {
                let mut raws = nodes.all();
                let begun = Instant::now();
                for turn in 0.. {
                    if begun.elapsed() > Duration::from_secs(5) {
                        break;
                    }
                    let value = format!("{worker}-{turn}");
                    raws.rotate_left(turn % 3);
                    // All nodes are asked at once, as Redlock does it.
                    let oks = thread::scope(|scope| {
                        let ask = |raw: &mut Tls| {
                            let reply = raw.line(&format!("SET k {value} NX PX 30000"));
                            assert!(reply == "+OK" || reply == "nil", "{reply}");
                            reply == "+OK"
                        };
                        let asked = raws.each_mut().map(|raw| scope.spawn(move || ask(raw)));
                        asked.map(|asked| asked.join().expect("it answers"))
                    });
                    let oks = oks.into_iter().filter(|ok| *ok).count();
                    if oks > 0 {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                        entries.fetch_add(1, Ordering::SeqCst);
                        shared.fetch_add(usize::from(oks > 1), Ordering::SeqCst);
                        // The client is inside for a while, so that others have time to enter.
                        sleep(Duration::from_millis(1));
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                    let released = raws.iter_mut().map(|raw| number(&raw.line(&release(&value))));
                    assert_eq!(released.sum::<i64>(), i64::try_from(oks).expect("a few"));
                }
            });
        }
    });
    let (entries, shared) = (entries.into_inner(), shared.into_inner());
    assert!(entries > 10 && shared > entries / 2, "{entries} entries, {shared} of several nodes");
}

fn release(value: &str) -> String {
    format!("DELIFEQ k {value}")
}

#[test]
fn a_holder_that_is_away_is_not_waited_for() {
    let nodes = Nodes::start("");
    let [mut one, mut two, mut three] = nodes.all();
    assert_eq!(one.line("SET k mine NX PX 60000"), "+OK");
    assert_eq!(two.line("SET k mine NX PX 60000"), "+OK");
    nodes.group.nodes[0].signal(Signal::STOP);
    let begun = Instant::now();
    for (line, part) in [("DOORWAY.FENCE k mine", "the node n1"), ("DELIFEQ k mine", "n1")] {
        two.refused(line, &["-TRYAGAIN", part, "does not answer"]);
    }
    let reply = three.line("SET k mine NX PX 60000");
    assert!(reply == "nil" || reply.starts_with("-TRYAGAIN"), "{reply}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    nodes.group.nodes[0].signal(Signal::CONT);
    until("it is released", || two.line("DELIFEQ k mine") == ":1");
    until("it is free", || three.line("SET k yours NX PX 60000") == "+OK");
}

#[test]
fn a_node_without_the_setting_confirms_nothing() {
    let addresses = addresses(3);
    let group = Group::start_each(|index| {
        let redlock = index != 0;
        format!("[redis]\nlisten = \"{}\"\nredlock = {redlock}\n", addresses[index])
    });
    let mut raws = addresses.iter().map(|address| Raw::new(group.connect(address)));
    let [mut one, mut two, mut three] = [(); 3].map(|()| raws.next().expect("three"));
    assert_eq!(one.line("SET k mine NX PX 5000"), "+OK");
    assert_eq!(two.line("SET k mine NX PX 5000"), "nil");
    assert_eq!(two.line("SET l mine NX PX 5000"), "+OK");
    assert_eq!(one.line("SET l mine NX PX 5000"), "nil");
    assert_eq!(three.line("SET l mine NX PX 5000"), "+OK");
}

/// `cargo xtask test` fetches redlock and ioredis and runs this one.
#[test]
#[ignore = "it needs Node, and directories with redlock and ioredis in REDIS_NODE"]
fn redlock_for_node_locks_at_three_nodes_of_which_one_is_killed() {
    let modules = std::env::var("REDIS_NODE").expect("directories with redlock and ioredis");
    for modules in modules.split(',') {
        // With this algorithm two of three nodes can serve.
        let rule = "[[lock]]\nnames = \"*\"\nalgorithm = \"majority\"\n";
        let mut nodes = Nodes::start(rule);
        let mut run = Command::new("timeout")
            .args(["120", "node"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/redis/redlock_group.js"))
            .args([modules, &nodes.addresses.join(",")])
            .arg(nodes.group.place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let said = run.stdout.take().expect("a pipe");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(said));
        let mut next = || lines.next().and_then(Result::ok).unwrap_or_default();
        let first = next();
        if first.starts_with("all nodes are well") {
            nodes.group.nodes[2].kill();
        }
        drop(run.stdin.take()); // It goes on.
        let second = next();
        let ended = run.wait_with_output().expect("it ends");
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{first}\n{second}\n{errors}");
        assert!(second.starts_with("all is well"), "{first}\n{second}\n{errors}");
        eprintln!("{first}\n{second}");
        // While a node is away, the others cannot know that.
        nodes.group.nodes[2].spawn();
        let mut one = nodes.connect(0);
        until("nothing is held", || one.line("EXISTS report counter") == ":0");
    }
}
