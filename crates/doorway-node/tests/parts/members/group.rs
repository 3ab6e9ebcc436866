//! Whole groups of keepers in virtual time, under one seed: processes are killed, suspended and
//! started again, answers are late or lost, clocks are wrong, and several nodes believe that they
//! lead.
//!
//! No member may be removed while it may still grant locks, and none may grant locks again after
//! its lease has ended or the keeper has given it up. When the faults end, every process gets its
//! seat, and nothing is left of dead ones.
//!
//! The same groups with a planted [`Mistake`] show that these tests notice one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
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

/// A rule that is broken around the keepers, which themselves are never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A node counts its full lease: it is told a lease so long that 0.9 of it are the full lease.
    FullLease,
    /// A node counts its lease from when the answer arrives: it is told a lease that is longer by
    /// the time since it sent the renewal.
    FromArrival,
    /// Members are removed without waiting.
    NoWait,
    /// The clocks of some nodes run a fifth too fast.
    FastClocks,
    /// A node believes an answer that arrives after the end of its lease: it read its clock too
    /// early.
    LateAnswer,
}

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
    /// No command of the process reaches the store before this time, and answers may come late.
    cut: Duration,
    /// How fast its clocks run, in thousandths.
    boot: u64,
    raw: u64,
    /// The clocks stood at 0 at this time.
    zero: Duration,
    /// For how long the machine has slept: the raw clock stood still.
    slept: Duration,
    /// The members that the process was, each with the time until which it may grant locks.
    leases: BTreeMap<MemberId, Duration>,
    /// The members that the process was and may never be again: their lease has ended, or the
    /// keeper has given them up.
    over: BTreeSet<MemberId>,
    /// When commands were sent that have no answer yet.
    sent: BTreeMap<PutId, Duration>,
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
    mistake: Option<Mistake>,
    /// What went wrong first.
    wrong: Option<String>,
    removals: u32,
    successions: u32,
    lapses: u32,
}

impl Group {
    fn new(seed: u64, mistake: Option<Mistake>) -> Self {
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
            mistake,
            wrong: None,
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
        let (mut boot, mut raw) = (915 + self.below(171), 999 + self.below(3));
        if self.mistake == Some(Mistake::FastClocks) && self.below(2) == 0 {
            (boot, raw) = (1200, 1200);
        }
        let record = Arc::clone(self.records.last().expect("the first one"));
        let keeper = Keeper::new(SeatId(seat as u64), RULES, nonce, record);
        self.processes.push(Process {
            keeper,
            seat,
            alive: true,
            suspended: Duration::ZERO,
            cut: Duration::ZERO,
            boot,
            raw,
            zero: self.time.saturating_sub(Duration::from_secs(100)),
            slept: Duration::ZERO,
            leases: BTreeMap::new(),
            over: BTreeSet::new(),
            sent: BTreeMap::new(),
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
        let mut now = self.processes[process].now(self.time);
        let Process { keeper, leases, over, .. } = &mut self.processes[process];
        over.extend(leases.iter().filter(|(_, until)| now.boot >= **until).map(|(id, _)| *id));
        if self.mistake == Some(Mistake::LateAnswer)
            && let (Event::Answer(..), Some(deadline)) = (&event, keeper.deadline())
        {
            now.boot = now.boot.min(deadline.saturating_sub(Duration::from_millis(1)));
        }
        let (before, lapsed) = (keeper.id(), event == Event::Lapsed);
        keeper.step(now, event, &mut out);
        let gives_up = |output: &Output| matches!(output, Output::Discard(_) | Output::GiveUp(_));
        if out.iter().any(gives_up) {
            over.extend(before);
        }
        if lapsed && keeper.deadline().is_some() {
            self.blame(format!("{before:?} keeps its lease although a shard has found its end"));
        }
        for output in out {
            self.perform(process, output);
        }
    }

    fn blame(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }

    fn perform(&mut self, process: usize, output: Output) {
        match output {
            Output::Put(put, command) => {
                self.commands.push(command);
                self.processes[process].sent.insert(put, self.time);
                if self.processes[process].cut > self.time {
                    return;
                }
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
                let gone = record.member(id).is_err();
                if until > now && (gone || self.processes[process].over.contains(&id)) {
                    let rest = until.saturating_sub(now);
                    let why = if gone { "was removed" } else { "was over" };
                    self.blame(format!("{id:?} {why}, and may grant locks for {rest:?}"));
                }
                self.processes[process].leases.insert(id, until);
            }
            // Clients that could not be told count on the lease until it ends.
            Output::Discard(_) | Output::GiveUp(_) => self.lapses += 1,
            // No client of these groups has a hold.
            Output::Left
            | Output::Blocked(_)
            | Output::Held { .. }
            | Output::Dropped { .. }
            | Output::Orphans(_) => {}
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
            Due::Answer(process, ..)
                if self.processes[process].cut > self.time && self.below(4) > 0 =>
            {
                let rest = self.processes[process].cut.saturating_sub(self.time);
                let after = self.millis(0, rest.as_millis() as u64 + 1);
                self.later(after, due);
            }
            Due::Answer(process, put, answer) => {
                let answer = answer.map(|at| self.answers[at].clone());
                let answer = answer.map(|answer| self.falsify(process, put, answer));
                self.tell(process, Event::Answer(put, answer));
            }
            Due::Record(process, at) => {
                let record = Arc::clone(&self.records[at]);
                self.tell(process, Event::Record(record));
            }
            Due::Up(process, seat) => self.tell(process, Event::Up(seat)),
        }
    }

    /// The answer to a renewal as a process with a mistake takes it.
    fn falsify(&mut self, process: usize, put: PutId, answer: Answer) -> Answer {
        let sent = self.processes[process].sent.remove(&put).unwrap_or(self.time);
        let Answer::Renewed { since, number, lease_ms } = answer else { return answer };
        let counted = |lease: Duration| (lease.as_millis() as u32).div_ceil(9) * 10;
        let lease = Duration::from_millis(lease_ms.into());
        let lease_ms = match self.mistake {
            Some(Mistake::FullLease) => counted(lease),
            Some(Mistake::FromArrival) => counted(lease * 9 / 10 + self.time.saturating_sub(sent)),
            _ => lease_ms,
        };
        Answer::Renewed { since, number, lease_ms }
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

    /// No member goes while clients may count on it, except in favour of its heir, at which they
    /// reclaim. A member that its own process has given up has no heir.
    fn judge(&mut self, before: &Record, after: &Record, command: &Command) {
        let is_entry = matches!(command, Command::Enter { .. });
        self.successions +=
            u32::from(matches!(command, Command::Enter { replaces, .. } if !replaces.is_empty()));
        self.removals += u32::from(matches!(
            command,
            Command::Remove { .. } | Command::Forget { .. } | Command::Leave { .. }
        ));
        let mut wrong = Vec::new();
        for gone in before.members.iter().filter(|it| after.member(it.id).is_err()) {
            for process in &self.processes {
                let Some(until) = process.leases.get(&gone.id) else { continue };
                let now = process.now(self.time).boot;
                let given_up = process.alive && process.over.contains(&gone.id);
                if now < *until && (!is_entry || given_up) {
                    let rest = until.saturating_sub(now);
                    wrong.push(format!("{:?} went while it may grant locks for {rest:?}", gone.id));
                }
            }
        }
        if let Some(wrong) = wrong.into_iter().next() {
            self.blame(wrong);
        }
    }

    fn fault(&mut self) {
        if !self.faults {
            return;
        }
        let alive: Vec<usize> =
            (0..self.processes.len()).filter(|it| self.processes[*it].alive).collect();
        let process = alive[self.below(alive.len() as u64) as usize];
        match self.below(7) {
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
            5 => self.processes[process].cut = self.time + self.millis(1000, 15_000),
            // A shard finds that the lease has ended, possibly before it has heard of a renewal.
            4 if self.processes[process].suspended <= self.time => {
                self.tell(process, Event::Lapsed);
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
        if self.mistake == Some(Mistake::NoWait) {
            let record = Arc::clone(self.records.last().expect("the first one"));
            let (number, seat) = (record.number, SeatId(1 + self.below(3)));
            self.commands.push(Command::Remove { number, seat, all: record.seen(seat, None) });
            self.put(process, PutId(u64::MAX), self.commands.len() - 1);
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
                self.processes[process].cut = Duration::ZERO;
                self.tell(process, Event::Leads(true));
            }
        }
    }
}

#[test]
fn no_member_is_removed_while_it_may_grant_locks_and_everybody_gets_a_seat_at_the_end() {
    let (mut removals, mut successions, mut lapses) = (0, 0, 0);
    for seed in 0..200 {
        let mut group = Group::new(seed, None);
        group.run_until(group.time + FAULTS);
        group.heal();
        group.run_until(group.time + RECOVERY);
        assert_eq!(group.wrong, None, "seed {seed}");
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

#[test]
fn planted_mistakes_are_noticed() {
    let mistakes = [
        Mistake::FullLease,
        Mistake::FromArrival,
        Mistake::NoWait,
        Mistake::FastClocks,
        Mistake::LateAnswer,
    ];
    for mistake in mistakes {
        let noticed = (0..200).find_map(|seed| {
            let mut group = Group::new(seed, Some(mistake));
            group.run_until(group.time + FAULTS);
            group.wrong.map(|wrong| (seed, wrong))
        });
        let (seed, wrong) = noticed.unwrap_or_else(|| panic!("{mistake:?} is not noticed"));
        println!("{mistake:?}: seed {seed}: {wrong}");
    }
}
