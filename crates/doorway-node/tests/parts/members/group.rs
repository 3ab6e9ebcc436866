//! Whole groups of keepers in virtual time, under one seed: processes are killed, suspended and
//! started again, answers are late or lost, clocks are wrong, and several nodes believe that they
//! lead.
//!
//! No member may be removed while it may still grant locks. When the faults end, every process gets
//! its seat, and nothing is left of dead ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{
    Answer, Command, Event, Keeper, MemberId, Now, Output, PutId, Record, SeatId,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng};

use super::{LEASE_MS, RULES, founded};

const LEASE: Duration = Duration::from_millis(LEASE_MS as u64);

/// How often a keeper is told that time has passed.
const TICK: Duration = Duration::from_millis(100);

/// For how long faults happen, and how long the group has to recover from them.
const FAULTS: Duration = Duration::from_mins(5);
const RECOVERY: Duration = Duration::from_secs(90);

/// Something that is to happen.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Tick(usize),
    Put(usize, PutId, CommandAt),
    Answer(usize, PutId, Option<usize>),
    Record(usize, usize),
    Up(usize, SeatId),
    Fault,
}

/// The place of a command in the list of all commands, which have no order themselves.
type CommandAt = usize;

/// A process, from its start to its end.
struct Process {
    keeper: Keeper,
    seat: usize,
    alive: bool,
    /// Nothing happens in the process before this time.
    suspended: Duration,
    /// How fast its clocks run, in thousandths.
    boot: u64,
    raw: u64,
    /// The clocks stood at 0 at this time.
    zero: Duration,
    /// For how long the machine has slept: the raw clock stood still.
    slept: Duration,
    /// The members that the process was, each with the time until which it may grant locks.
    leases: BTreeMap<MemberId, Duration>,
}

impl Process {
    fn now(&self, time: Duration) -> Now {
        let passed = time.saturating_sub(self.zero);
        let at = |rate: u64, passed: Duration| passed * rate as u32 / 1000;
        let awake = passed.saturating_sub(self.slept);
        Now { boot: at(self.boot, passed), raw: at(self.raw, awake) }
    }
}

struct Group {
    random: ChaCha8Rng,
    time: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64, Due)>>,
    number: u64,
    /// All records, in the order in which the store agreed on them.
    records: Vec<Arc<Record>>,
    commands: Vec<Command>,
    answers: Vec<Answer>,
    processes: Vec<Process>,
    faults: bool,
    removals: u32,
    successions: u32,
    lapses: u32,
}

impl Group {
    fn new(seed: u64) -> Self {
        let mut group = Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            time: Duration::from_secs(1000),
            queue: BinaryHeap::new(),
            number: 0,
            records: vec![Arc::new(founded(3))],
            commands: Vec::new(),
            answers: Vec::new(),
            processes: Vec::new(),
            faults: true,
            removals: 0,
            successions: 0,
            lapses: 0,
        };
        for seat in 1..=3 {
            group.start(seat);
        }
        group.later(Duration::from_secs(20), Due::Fault);
        group
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    fn later(&mut self, after: Duration, due: Due) {
        self.number += 1;
        self.queue.push(Reverse((self.time + after, self.number, due)));
    }

    /// Start a process at a seat. Its clocks may be slewed and may drift.
    fn start(&mut self, seat: usize) {
        let nonce = u128::from(self.random.next_u64());
        let (boot, raw) = (915 + self.below(171), 999 + self.below(3));
        let record = Arc::clone(self.records.last().expect("the first one"));
        let keeper = Keeper::new(SeatId(seat as u64), RULES, nonce, record);
        self.processes.push(Process {
            keeper,
            seat,
            alive: true,
            suspended: Duration::ZERO,
            boot,
            raw,
            zero: self.time.saturating_sub(Duration::from_secs(100)),
            slept: Duration::ZERO,
            leases: BTreeMap::new(),
        });
        let process = self.processes.len() - 1;
        self.later(Duration::ZERO, Due::Tick(process));
        let leads = self.below(3) > 0;
        self.tell(process, Event::Leads(leads));
        self.tell(process, Event::Reclaimed);
        // It meets the members that there are.
        let known: Vec<_> = self.processes.iter().filter(|it| it.alive).collect();
        let seats: Vec<_> = known.iter().map(|it| SeatId(it.seat as u64)).collect();
        for seat in seats {
            let after = self.millis(1, 300);
            self.later(after, Due::Up(process, seat));
        }
    }

    /// Tell a keeper something, and do what it says.
    fn tell(&mut self, process: usize, event: Event) {
        let mut out = Vec::new();
        let now = self.processes[process].now(self.time);
        self.processes[process].keeper.step(now, event, &mut out);
        for output in out {
            self.perform(process, output);
        }
    }

    fn perform(&mut self, process: usize, output: Output) {
        match output {
            Output::Put(put, command) => {
                self.commands.push(command);
                let slow = self.faults && self.below(10) == 0;
                let after = if slow { self.millis(10, 15_000) } else { self.millis(1, 50) };
                self.later(after, Due::Put(process, put, self.commands.len() - 1));
            }
            Output::Joined(_) => {
                let seat = SeatId(self.processes[process].seat as u64);
                for other in 0..self.processes.len() {
                    if other != process && self.processes[other].alive {
                        let after = self.millis(1, 300);
                        self.later(after, Due::Up(other, seat));
                    }
                }
            }
            Output::Lease(until) => {
                let id = self.processes[process].keeper.id().expect("only members have leases");
                let record = self.records.last().expect("the first one");
                let now = self.processes[process].now(self.time).boot;
                assert!(
                    record.member(id).is_ok() || until <= now,
                    "{id:?} was removed, and believes that it may grant locks for {:?}",
                    until.saturating_sub(now)
                );
                self.processes[process].leases.insert(id, until);
            }
            // Clients that could not be told count on the lease until it ends.
            Output::Discard(_) => self.lapses += 1,
            Output::Left | Output::Blocked(_) => {}
            Output::GiveUp(_) => self.lapses += 1,
        }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Put(process, put, command) => self.put(process, put, command),
            Due::Fault => self.fault(),
            Due::Tick(process)
            | Due::Answer(process, ..)
            | Due::Record(process, _)
            | Due::Up(process, _)
                if !self.processes[process].alive => {}
            Due::Tick(process)
            | Due::Answer(process, ..)
            | Due::Record(process, _)
            | Due::Up(process, _)
                if self.processes[process].suspended > self.time =>
            {
                let rest = self.processes[process].suspended.saturating_sub(self.time);
                self.later(rest, due);
            }
            Due::Tick(process) => {
                self.later(TICK, Due::Tick(process));
                self.tell(process, Event::Tick);
            }
            Due::Answer(process, put, answer) => {
                let answer = answer.map(|at| self.answers[at].clone());
                self.tell(process, Event::Answer(put, answer));
            }
            Due::Record(process, at) => {
                let record = Arc::clone(&self.records[at]);
                self.tell(process, Event::Record(record));
            }
            Due::Up(process, seat) => self.tell(process, Event::Up(seat)),
        }
    }

    /// The store agrees on a command.
    fn put(&mut self, process: usize, put: PutId, command: CommandAt) {
        let before = Arc::clone(self.records.last().expect("the first one"));
        let mut record = Record::clone(&before);
        let command = self.commands[command].clone();
        let answer = record.apply(&command);
        if record != *before {
            self.judge(&before, &record, &command);
            self.records.push(Arc::new(record));
            let at = self.records.len() - 1;
            for process in 0..self.processes.len() {
                let slow = self.faults && self.below(10) == 0;
                let after = if slow { self.millis(10, 3000) } else { self.millis(1, 30) };
                self.later(after, Due::Record(process, at));
            }
        }
        self.answers.push(answer);
        let known = !self.faults || self.below(10) > 0;
        let after = self.millis(1, if self.faults { 400 } else { 30 });
        let answer = known.then_some(self.answers.len() - 1);
        self.later(after, Due::Answer(process, put, answer));
    }

    /// No member goes while it may still grant locks, except in favour of its heir.
    fn judge(&mut self, before: &Record, after: &Record, command: &Command) {
        self.successions +=
            u32::from(matches!(command, Command::Enter { replaces, .. } if !replaces.is_empty()));
        if !matches!(
            command,
            Command::Remove { .. } | Command::Forget { .. } | Command::Leave { .. }
        ) {
            return;
        }
        self.removals += 1;
        for gone in before.members.iter().filter(|it| after.member(it.id).is_err()) {
            for process in &self.processes {
                let Some(until) = process.leases.get(&gone.id) else { continue };
                let now = process.now(self.time).boot;
                assert!(
                    now >= *until,
                    "{:?} was removed although it may grant locks for {:?}",
                    gone.id,
                    until.saturating_sub(now)
                );
            }
        }
    }

    fn fault(&mut self) {
        if !self.faults {
            return;
        }
        let alive: Vec<usize> =
            (0..self.processes.len()).filter(|it| self.processes[*it].alive).collect();
        let process = alive[self.below(alive.len() as u64) as usize];
        match self.below(5) {
            // The process is killed and comes back, soon or late.
            0 | 1 if alive.len() == 3 => {
                self.processes[process].alive = false;
                let seat = SeatId(self.processes[process].seat as u64);
                for other in alive.into_iter().filter(|other| *other != process) {
                    self.tell(other, Event::Down(seat));
                }
            }
            2 => {
                let time = self.millis(100, 30_000);
                self.processes[process].suspended = self.time + time;
                if self.below(2) == 0 {
                    self.processes[process].slept += time; // With its whole machine.
                }
            }
            3 => {
                let leads = self.below(2) == 0;
                self.tell(process, Event::Leads(leads));
            }
            _ => {
                let dead: Vec<usize> = (1..=3)
                    .filter(|seat| !self.processes.iter().any(|it| it.alive && it.seat == *seat))
                    .collect();
                for seat in dead {
                    self.start(seat);
                }
            }
        }
        let after = self.millis(500, 20_000);
        self.later(after, Due::Fault);
    }

    fn run_until(&mut self, end: Duration) {
        while let Some(Reverse((at, _, _))) = self.queue.peek()
            && *at <= end
            && let Some(Reverse((at, _, due))) = self.queue.pop()
        {
            self.time = at;
            self.happen(due);
        }
        self.time = end;
    }

    /// All processes run again, and one of them leads.
    fn heal(&mut self) {
        self.faults = false;
        for seat in 1..=3 {
            if !self.processes.iter().any(|it| it.alive && it.seat == seat) {
                self.start(seat);
            }
        }
        for process in 0..self.processes.len() {
            if self.processes[process].alive {
                self.processes[process].suspended = Duration::ZERO;
                self.tell(process, Event::Leads(true));
            }
        }
    }
}

#[test]
fn no_member_is_removed_while_it_may_grant_locks_and_everybody_gets_a_seat_at_the_end() {
    let (mut removals, mut successions, mut lapses) = (0, 0, 0);
    for seed in 0..200 {
        let mut group = Group::new(seed);
        group.run_until(group.time + FAULTS);
        group.heal();
        group.run_until(group.time + RECOVERY);
        let record = group.records.last().expect("the first one");
        let alive: Vec<_> = group.processes.iter().filter(|it| it.alive).collect();
        assert_eq!(alive.len(), 3, "seed {seed}");
        let mut ids: Vec<_> = alive.iter().filter_map(|it| it.keeper.id()).collect();
        ids.sort_unstable();
        let seated: Vec<_> = record.seated().map(|member| member.id).collect();
        assert_eq!(seated, ids, "seed {seed}: {record:#?}");
        assert_eq!(record.members.len(), 3, "seed {seed}: nothing is left of dead processes");
        for process in alive {
            let (now, until) = (process.now(group.time).boot, process.keeper.deadline());
            assert!(until.is_some_and(|until| until > now + LEASE / 2), "seed {seed}");
        }
        removals += group.removals;
        successions += group.successions;
        lapses += group.lapses;
    }
    assert!(
        removals > 200 && successions > 200 && lapses > 60,
        "{removals} {successions} {lapses}"
    );
}
