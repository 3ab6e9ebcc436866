//! A group under trial: its machines, the clients on each of them, the referee, and the judge.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::clients::{self, BUSY, JOB, KINDS, now};
use crate::group::{Group, Pace};
use crate::judge::{Account, HANGS, Judge, Line, Verb};
use crate::machines::{self, COUNT};
use crate::metronome::Metronome;
use crate::place::{Process, until};
use crate::referee::{self, Ear};

/// A group under trial.
pub(crate) struct Trial {
    pub(crate) group: Group,
    /// The clients of each node.
    crowds: Vec<Option<Process>>,
    _referee: Process,
    ear: Ear,
    log: File,
    /// What was read of the log and is not a whole line yet.
    rest: Vec<u8>,
    pub(crate) judge: Judge,
    metronome: Metronome,
}

impl Trial {
    /// A founded group with clients that are at work.
    pub(crate) fn new() -> Self {
        let mut group = Group::on(machines::make(), COUNT, Pace::QUICK);
        machines::small_disk(&group.place.file(group.name(COUNT - 1)));
        let mut program = Command::new(std::env::current_exe().expect("a program"));
        role(&mut program, referee::TEST, referee::ROLE, "1");
        let place = group.place.directory.clone();
        let referee = Process::spawn(program.current_dir(&place));
        let mut ear = None;
        until("the referee listens", || {
            ear = Ear::connect(&place).ok();
            ear.is_some()
        });
        group.found(COUNT);
        let mut trial = Self {
            crowds: (0..COUNT).map(|_| None).collect(),
            _referee: referee,
            ear: ear.expect("a connection"),
            log: File::open(place.join(referee::LOG)).expect("a log"),
            rest: Vec::new(),
            judge: Judge::default(),
            metronome: Metronome::start(&place),
            group,
        };
        (0..COUNT).for_each(|node| trial.start_clients(node));
        trial.peace();
        trial
    }

    pub(crate) fn start_clients(&mut self, node: usize) {
        let mut program =
            self.group.machines[node].command(std::env::current_exe().expect("a program"));
        let what = format!("{} {}", self.group.name(node), self.group.socket(node));
        role(&mut program, clients::TEST, clients::ROLE, &what);
        program.current_dir(&self.group.place.directory);
        self.crowds[node] = Some(Process::spawn(&mut program));
    }

    /// Kill the clients of a node.
    pub(crate) fn kill_clients(&mut self, node: usize) {
        drop(self.crowds[node].take());
        for kind in KINDS {
            let client = format!("{}/{kind}", self.group.name(node));
            self.ear.say(&Line::said(&client, Verb::Dies, "-", 0, now()));
        }
    }

    /// Stop or continue the clients of a node.
    pub(crate) fn signal_clients(&self, node: usize, name: &str) {
        self.crowds[node].as_ref().expect("they run").signal(name);
    }

    /// Let the judge read what is new in the log.
    pub(crate) fn look(&mut self) {
        self.log.read_to_end(&mut self.rest).expect("a file");
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |it| it + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        for line in std::str::from_utf8(&lines).expect("text").lines() {
            self.judge.read(&Line::parse(line).expect("a line of the referee"));
        }
    }

    /// Wait until the judge has seen something. Fails if clients would have to hang for that long.
    pub(crate) fn see<T>(&mut self, what: &str, mut see: impl FnMut(&Judge) -> Option<T>) -> T {
        let end = Instant::now() + HANGS;
        loop {
            self.look();
            if let Some(seen) = see(&self.judge) {
                return seen;
            }
            assert!(Instant::now() < end, "waited in vain until {what}");
            sleep(Duration::from_millis(2));
        }
    }

    /// Wait until all busy clients have entered at every node. The judge sees whether others hang.
    pub(crate) fn peace(&mut self) {
        let since = now();
        for node in 0..COUNT {
            for kind in BUSY {
                let client = format!("{}/{kind}", self.group.name(node));
                let what = format!("{client} enters");
                self.see(&what, |judge| (judge.entered(&client) > since).then_some(()));
            }
        }
    }

    /// Let a fault happen to a node, or to all of them, and wait until all is well again.
    pub(crate) fn fault(&mut self, node: Option<usize>, fault: impl FnOnce(&mut Self)) -> Account {
        self.look();
        let name = node.map_or("", |node| self.group.name(node));
        self.metronome.longest();
        self.judge.begin(name, JOB, now());
        fault(self);
        self.leave();
        (0..COUNT).for_each(|node| self.group.complete(node));
        self.peace();
        Account { stood_still: self.metronome.longest(), ..self.judge.end(now()) }
    }

    /// Wait until a client has entered at another node than that of the fault.
    pub(crate) fn next_in(&mut self) {
        self.see("the next client is in", |judge| judge.account().next_in);
    }

    /// The node of a client that has just entered, and that stays inside from now on, or one of
    /// these nodes only.
    pub(crate) fn holder(&mut self, nodes: &[usize]) -> usize {
        const JUST: u64 = 30_000_000;
        let names: Vec<&str> = nodes.iter().map(|node| self.group.name(*node)).collect();
        let name = self.see("a client enters", |judge| {
            let (node, since) = judge.inside(JOB)?;
            (names.contains(&node) && now() < since + JUST).then(|| node.to_owned())
        });
        let node = (0..COUNT).find(|node| self.group.name(*node) == name).expect("a node");
        self.stay(node, &BUSY);
        node
    }

    /// Let clients of a node stay inside until the fault is over, or until they are told that
    /// their locks are lost.
    pub(crate) fn stay(&self, node: usize, kinds: &[&str]) {
        for kind in kinds {
            let file = clients::stay(self.group.name(node), kind);
            File::create(self.group.place.file(&file)).expect("a file");
        }
        // Most of them are inside by then.
        sleep(Duration::from_millis(60));
    }

    /// Let all clients leave.
    fn leave(&self) {
        let files = (0..COUNT).flat_map(|node| BUSY.map(|kind| (node, kind)));
        for (node, kind) in files {
            let file = clients::stay(self.group.name(node), kind);
            let _ = std::fs::remove_file(self.group.place.file(&file));
        }
    }

    /// Is a client of this node inside?
    pub(crate) fn holds(&mut self, node: usize) -> bool {
        self.look();
        self.judge.inside(JOB).is_some_and(|(name, _)| name == self.group.name(node))
    }
}

/// Make a command this program in another role.
fn role(command: &mut Command, test: &str, variable: &str, value: &str) {
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(variable, value).stdin(Stdio::piped()).stdout(Stdio::null());
}
