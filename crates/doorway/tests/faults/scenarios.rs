//! The faults, one after the other, and what must be true of each.

#![expect(clippy::unnecessary_wraps, reason = "all faults have one signature; some may miss")]

use std::fs::File;
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use crate::group::LEASE;
use crate::judge::Account;
use crate::machines::{self, COUNT};
use crate::place::until;
use crate::table::Row;
use crate::trial::Trial;

/// How much longer than the lease the next client may wait until this fails.
const GOAL: Duration = Duration::from_secs(1);

/// How much longer it may wait if no table is written: the machine may have much else to do then.
const BUSY_GOAL: Duration = Duration::from_secs(3);

/// All nodes.
const ALL: [usize; COUNT] = [0, 1, 2, 3, 4];

/// One fault: what it is, how often it happens for each kill that is asked for, what it may cost,
/// and how it happens.
struct Scenario {
    what: &'static str,
    /// It happens once for this many kills.
    rarity: usize,
    allowed: AllowedCost,
    /// None if the fault did not hit what it should.
    happen: fn(&mut Trial) -> Option<Account>,
}

/// What a fault may cost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AllowedCost {
    /// No grant is lost anywhere.
    Nothing,
    /// Clients of the node that has the fault lose their grants, and the next one is in after the
    /// lease.
    Grants,
    /// Everything except double entries and clients that hang.
    All,
}

use AllowedCost::{All, Grants, Nothing};

const SCENARIOS: [Scenario; 18] = [
    Scenario::new("kill -9 of the leader", 1, Grants, |trial| {
        let node = trial.group.leader();
        trial.stay(node, &["hot", "own"]);
        kill(trial, node, false)
    }),
    Scenario::new("kill -9 of the holder's node", 1, Grants, |trial| kill_holder(trial, false)),
    Scenario::new("kill -9 of a follower", 1, Grants, |trial| {
        let leader = trial.group.leader();
        let node = (leader + 1) % COUNT;
        trial.stay(node, &["hot", "own"]);
        kill(trial, node, false)
    }),
    Scenario::new("kill -9 of the holder's node and of all its clients", 3, Grants, |trial| {
        kill_holder(trial, true)
    }),
    Scenario::new("SIGSTOP of the holder's node for 0.5 leases", 10, Grants, |trial| {
        stop(trial, 0.5, false)
    }),
    Scenario::new("SIGSTOP of the holder's node for 0.95 leases", 10, Grants, |trial| {
        stop(trial, 0.95, false)
    }),
    Scenario::new("SIGSTOP of the holder's node for 1.5 leases", 10, Grants, |trial| {
        stop(trial, 1.5, false)
    }),
    Scenario::new("SIGSTOP of the holder's node for 3 leases", 10, Grants, |trial| {
        stop(trial, 3.0, false)
    }),
    Scenario::new("SIGSTOP of a node and its clients for 1.5 leases", 10, Grants, |trial| {
        stop(trial, 1.5, true)
    }),
    Scenario::new("the holder's node is cut off for 1.5 leases", 10, Grants, |trial| {
        cut(trial, |node, other| vec![(node, other), (other, node)])
    }),
    Scenario::new("nothing from the holder's node arrives, 1.5 leases", 10, Grants, |trial| {
        cut(trial, |node, other| vec![(node, other)])
    }),
    Scenario::new("nothing arrives at the holder's node, 1.5 leases", 10, Grants, |trial| {
        cut(trial, |node, other| vec![(other, node)])
    }),
    Scenario::new("the holder's node and the next one are cut, 1.5 leases", 10, All, |trial| {
        cut(trial, |node, other| {
            let is_next = other == (node + 1) % COUNT;
            if is_next { vec![(node, other), (other, node)] } else { vec![] }
        })
    }),
    Scenario::new("orderly restart of each node in turn", 5, Nothing, restarts),
    Scenario::new("a full disk for 1.5 leases", 10, Grants, full_disk),
    Scenario::new("`replace`: a node with a new disk", 10, Grants, replace),
    Scenario::new("`remove`, and `add` with a new disk", 10, Grants, remove),
    Scenario::new("`recover --alone` of one node, `add` of four", 20, All, recover),
];

impl Scenario {
    const fn new(
        what: &'static str,
        rarity: usize,
        allowed: AllowedCost,
        happen: fn(&mut Trial) -> Option<Account>,
    ) -> Self {
        Self { what, rarity, allowed, happen }
    }

    /// Let the fault happen as often as the number of kills says.
    fn run(&self, kills: usize, trial: &mut Trial) -> Row {
        let mut row = Row::new(self.what);
        let wanted = (kills / self.rarity).max(1);
        for _ in 0..wanted * 3 {
            if row.times < wanted
                && let Some(account) = (self.happen)(trial)
            {
                row.add(account);
            }
        }
        assert_eq!(row.times, wanted, "{}: the fault misses", self.what);
        println!("{row}");
        if row.busy > 0 {
            let still = row.worst.stood_still.as_millis();
            println!(
                "{} of {} without figures: the machine stood still for up to {still} ms",
                row.busy, row.times
            );
        }
        row
    }

    /// Was more lost than may be, or was the next client in too late?
    fn is_missed(&self, row: &Row, goal: Duration) -> bool {
        let Account { next_in, lost_there, lost_elsewhere, .. } = row.worst;
        let late = match next_in {
            Some(time) => time > LEASE + goal,
            None => row.busy < row.times,
        };
        match self.allowed {
            Nothing => lost_there + lost_elsewhere > 0 || late,
            Grants => lost_elsewhere > 0 || late,
            All => false,
        }
    }
}

/// Let all faults happen whose names contain `only`, and kill nodes this often.
pub(crate) fn run(times: usize, only: &str, table: Option<&str>) {
    let mut trial = Trial::new();
    let goal = if table.is_some() { GOAL } else { BUSY_GOAL };
    let (mut text, mut complaints) = (Row::HEADING.to_owned(), Vec::new());
    print!("{text}");
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.what.contains(only)) {
        let mut row = scenario.run(times, &mut trial);
        if scenario.is_missed(&row, goal) && table.is_none() {
            // A lease of 2 s is short: a busy machine can use it up without standing still. A table
            // has all of it.
            println!("once more, because of what was lost or late");
            row = scenario.run(times, &mut trial);
        }
        if scenario.is_missed(&row, goal) || row.worst.double + row.worst.hung > 0 {
            complaints.push(row.to_string());
        }
        text += &row.to_string();
        text.push('\n');
    }
    if let Some(table) = table {
        std::fs::write(table, &text).expect("a file");
    }
    trial.look();
    let (longest, who) = &trial.judge.longest;
    println!("{} entries; longest wait: {longest:.1?}, of {who}", trial.judge.entries());
    complaints.extend(trial.judge.overlaps());
    complaints.extend(trial.judge.untold());
    complaints.extend(std::mem::take(&mut trial.judge.wrong));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Kill a node, and its clients or not, and start it again when another client is in.
fn kill(trial: &mut Trial, node: usize, machine: bool) -> Option<Account> {
    let account = trial.fault(Some(node), |trial| {
        trial.group.kill(node);
        if machine {
            trial.kill_clients(node);
        }
        trial.next_in();
        trial.group.start(node);
        if machine {
            trial.start_clients(node);
        }
    });
    Some(account)
}

/// Kill the node of a client that is inside. None if the client had left by then.
fn kill_holder(trial: &mut Trial, machine: bool) -> Option<Account> {
    let node = trial.holder(&ALL);
    let hit = trial.holds(node);
    let account = kill(trial, node, machine);
    account.filter(|_| hit)
}

/// Stop the holder's node, and its clients or not, for this many leases.
fn stop(trial: &mut Trial, leases: f64, machine: bool) -> Option<Account> {
    let node = trial.holder(&ALL);
    let account = trial.fault(Some(node), |trial| {
        let process = trial.group.nodes[node].as_ref().expect("it runs");
        process.signal("STOP");
        if machine {
            trial.signal_clients(node, "STOP");
        }
        sleep(LEASE.mul_f64(leases));
        process.signal("CONT");
        if machine {
            trial.signal_clients(node, "CONT");
        }
    });
    Some(account)
}

/// Cut the ways that `ways` names for each other node, as (from, to).
fn cut(trial: &mut Trial, ways: fn(usize, usize) -> Vec<(usize, usize)>) -> Option<Account> {
    let node = trial.holder(&ALL);
    let account = trial.fault(Some(node), |_| {
        for other in (0..COUNT).filter(|other| *other != node) {
            for (from, to) in ways(node, other) {
                machines::cut(from, to);
            }
        }
        sleep(LEASE.mul_f64(1.5));
        machines::heal();
    });
    Some(account)
}

/// Restart all nodes, one after the other, as an operator does.
fn restarts(trial: &mut Trial) -> Option<Account> {
    let mut row = Row::default();
    for node in ALL {
        trial.holder(&[node]);
        row.add(trial.fault(Some(node), |trial| {
            trial.group.stop(node);
            trial.group.start(node);
            trial.group.complete(node);
        }));
    }
    Some(row.worst)
}

/// Fill the disk of the last node. If that ends it, start it again when there is space.
fn full_disk(trial: &mut Trial) -> Option<Account> {
    let node = trial.holder(&[COUNT - 1]);
    let account = trial.fault(Some(node), |trial| {
        let path = trial.group.place.file(trial.group.name(node)).join("filler");
        let mut filler = File::create(&path).expect("a file");
        while filler.write_all(&[0; 4096]).is_ok() {}
        sleep(LEASE.mul_f64(1.5));
        std::fs::remove_file(path).expect("the file is there");
        if trial.group.nodes[node].as_mut().is_some_and(super::place::Process::has_ended) {
            println!("a full disk has ended the node");
            trial.group.nodes[node] = None;
            trial.group.start(node);
        }
    });
    Some(account)
}

/// A node comes back with an empty disk.
fn replace(trial: &mut Trial) -> Option<Account> {
    let node = trial.holder(&[COUNT - 2]);
    let account = trial.fault(Some(node), |trial| {
        trial.group.kill(node);
        trial.group.wipe(node);
        trial.group.start(node);
        let words = format!("members replace {}", trial.group.name(node));
        // The new node has to find the group first.
        until("it is replaced", || trial.group.output(0, &words).status.success());
    });
    Some(account)
}

/// A node is removed, and comes back with an empty disk.
fn remove(trial: &mut Trial) -> Option<Account> {
    let node = trial.holder(&[COUNT - 2]);
    let account = trial.fault(Some(node), |trial| {
        let (name, address) = (trial.group.name(node), trial.group.address(node).to_owned());
        trial.group.answer(0, &format!("members remove {name}"));
        trial.next_in();
        trial.group.kill(node);
        trial.group.wipe(node);
        trial.group.start(node);
        let words = format!("members add {name} {address}");
        until("it is added", || trial.group.output(0, &words).status.success());
    });
    Some(account)
}

/// The disks of four nodes are lost. The first one goes on alone, and the others join it.
fn recover(trial: &mut Trial) -> Option<Account> {
    for node in ALL {
        trial.stay(node, &["own"]);
    }
    let account = trial.fault(None, |trial| {
        for node in 1..COUNT {
            trial.group.kill(node);
            trial.group.wipe(node);
        }
        trial.group.kill(0);
        let config = format!("{}.toml", trial.group.name(0));
        trial.group.answer(0, &format!("members recover --alone --yes --config {config}"));
        trial.group.start(0);
        trial.group.complete(0);
        for node in 1..COUNT {
            trial.group.start(node);
            let (name, address) = (trial.group.name(node), trial.group.address(node));
            let words = format!("members add {name} {address}");
            until("it is added", || trial.group.output(0, &words).status.success());
        }
    });
    Some(account)
}
