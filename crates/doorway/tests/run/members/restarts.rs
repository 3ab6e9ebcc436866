//! Orderly restarts of all nodes of a group, one after the other, while clients hold locks and ask
//! for them.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use super::group::Group;
use crate::place::{Process, until};

/// A client that holds its lock until it may go.
const HOLD: &str = "echo > $DOORWAY_LOCK.held; until [ -e go ]; do sleep 0.02; done; exit 3";

/// A client that asks for a lock again and again, at a node that runs.
struct Asker {
    /// Locked while a request is under way. While the node is started again, the test has it.
    turn: Arc<Mutex<()>>,
    thread: JoinHandle<usize>,
}

impl Asker {
    fn start(group: &Group, node: usize, over: &Arc<AtomicBool>) -> Self {
        let turn = Arc::new(Mutex::new(()));
        let (own, over) = (Arc::clone(&turn), Arc::clone(over));
        let mut ask = group.command(node, "run -w 60 busy -- sleep 0.01");
        let thread = thread::spawn(move || {
            let mut entries = 0;
            while !over.load(Ordering::Relaxed) {
                let turn = own.lock().unwrap_or_else(PoisonError::into_inner);
                let done = ask.output().expect("it runs");
                drop(turn);
                assert!(done.status.success(), "at node {node}: {done:?}");
                entries += 1;
                sleep(Duration::from_millis(5)); // So that the test gets its turn.
            }
            entries
        });
        Self { turn, thread }
    }
}

/// No session that was alive is lost: neither one that holds a lock, nor one that waits for it, nor
/// one that asks at another node meanwhile.
#[test]
fn a_rolling_restart_loses_no_session() {
    let mut group = Group::founded();
    let held = ["a", "b", "c"];
    let holders: Vec<Process> =
        (0..3).map(|node| group.run(node, &format!("-w 60 {}", held[node]), HOLD)).collect();
    until("all locks are held", || {
        held.iter().all(|lock| group.place.file(&format!("{lock}.held")).exists())
    });
    // At each node, somebody waits for the lock that a client of the next one holds.
    let waiters: Vec<Process> = (0..3)
        .map(|node| group.run(node, &format!("-w 600 {}", held[(node + 1) % 3]), "exit 4"))
        .collect();
    until("they wait", || (0..3).all(|node| group.count(node, "doorway_waiting") == 1));
    let over = Arc::new(AtomicBool::new(false));
    let askers: Vec<Asker> = (0..3).map(|node| Asker::start(&group, node, &over)).collect();

    for (node, asker) in askers.iter().enumerate() {
        let turn = asker.turn.lock().unwrap_or_else(PoisonError::into_inner);
        group.stop(node);
        group.start(node);
        group.complete(node);
        drop(turn);
        for (other, lock) in held.iter().enumerate() {
            let code = group.output(other, &format!("run -n {lock} -- true")).status.code();
            assert_eq!(code, Some(1), "{lock} is held after the restart of node {node}");
        }
    }

    over.store(true, Ordering::Relaxed);
    for asker in askers {
        assert!(asker.thread.join().expect("no request fails") > 0);
    }
    fs::write(group.place.file("go"), "").expect("a file");
    for (node, (holder, waiter)) in holders.into_iter().zip(waiters).enumerate() {
        assert_eq!(holder.end().code(), Some(3), "the client at node {node} kept its lock");
        assert_eq!(waiter.end().code(), Some(4), "the client at node {node} got the lock");
    }
}
