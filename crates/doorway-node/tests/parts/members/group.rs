//! Whole groups of keepers in virtual time, under one seed: processes are killed, suspended and
//! started again, answers are late or lost, clocks are wrong, and several nodes believe that they
//! lead.
//!
//! No member may be removed while it may still grant locks, and none may grant locks again after
//! its lease has ended or the keeper has given it up. Each member has one client with a hold, which
//! it renews as long as it may. No hold is dropped while its client believes in it. When the faults
//! end, every process gets its seat, and nothing is left of dead ones.
//!
//! The same groups with a planted [`Mistake`] show that these tests notice one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{
    Answer, ClockTimes, Command, Event, GroupState, HoldId, Keeper, MemberId, Output, PutId,
    Record, SeatId,
};
use doorway_node::{Fence, Name};
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
    /// The group counts a shorter lease at once, although the member still counts on a longer one.
    ShorterAtOnce,
    /// Members are removed without waiting.
    NoWait,
    /// The clocks of some nodes run a fifth too fast.
    FastClocks,
    /// A node believes an answer that arrives after the end of its lease: it read its clock too
    /// early.
    LateAnswer,
    /// The group is told 98 % of the time that a client believes in its lock.
    ShortHold,
}

/// Something that is to happen.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DueEvent {
    Tick(usize),
    Put(usize, PutId, CommandAt),
    Answer(usize, PutId, Option<usize>),
    Record(usize, usize),
    Holds(usize, usize),
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
    /// The client of each membership, once the group keeps its hold, and the length of the hold.
    holds: BTreeMap<MemberId, Duration>,
    /// The holds of this state were shown last.
    shown: usize,
}

impl Process {
    fn now(&self, time: Duration) -> ClockTimes {
        let passed = time.saturating_sub(self.zero);
        let at = |rate: u64, passed: Duration| passed * rate as u32 / 1000;
        let awake = passed.saturating_sub(self.slept);
        ClockTimes { boot: at(self.boot, passed), raw: at(self.raw, awake) }
    }
}

struct Group {
    random: ChaCha8Rng,
    time: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64, DueEvent)>>,
    number: u64,
    /// All states, in the order in which the store agreed on them.
    states: Vec<GroupState>,
    /// Until when clients believe in their locks.
    beliefs: BTreeMap<HoldId, Duration>,
    commands: Vec<Command>,
    answers: Vec<Answer>,
    processes: Vec<Process>,
    faults: bool,
    /// Whether an operator changes the lease.
    operator: bool,
    mistake: Option<Mistake>,
    /// What went wrong first.
    wrong: Option<String>,
    removals: u32,
    successions: u32,
    lapses: u32,
    /// How many orphans were dropped.
    drops: u32,
}

impl Group {
    fn new(seed: u64, mistake: Option<Mistake>) -> Self {
        let mut group = Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            time: Duration::from_secs(1000),
            queue: BinaryHeap::new(),
            number: 0,
            states: vec![GroupState::new(founded(3))],
            beliefs: BTreeMap::new(),
            commands: Vec::new(),
            answers: Vec::new(),
            processes: Vec::new(),
            faults: true,
            operator: seed % 2 == 1,
            mistake,
            wrong: None,
            removals: 0,
            successions: 0,
            lapses: 0,
            drops: 0,
        };
        for seat in 1..=3 {
            group.start(seat);
        }
        group.later(Duration::from_secs(20), DueEvent::Fault);
        group
    }

    fn state(&self) -> &GroupState {
        self.states.last().expect("the first one")
    }

    fn record(&self) -> Arc<Record> {
        Arc::clone(&self.state().record)
    }

    /// The client of a member that is in the view asks for a hold, once. Its fence is the number of
    /// the member.
    fn ask_hold(&mut self, process: usize) {
        let Process { keeper, holds, .. } = &self.processes[process];
        let seated =
            |id: &MemberId| keeper.record().member(*id).is_ok_and(|member| member.since.is_some());
        let Some(id) = keeper.id().filter(seated) else { return };
        if holds.contains_key(&id) {
            return;
        }
        let length = self.millis(9_000, 40_000);
        self.processes[process].holds.insert(id, length);
        let told = if self.mistake == Some(Mistake::ShortHold) { length * 49 / 50 } else { length };
        let HoldId { name, fence, .. } = hold_of(id);
        let length_ms = Some(told.as_millis() as u64);
        self.tell(process, Event::Hold { name, fence, length_ms });
    }

    /// A node that may do so answers its client, which believes in its lock from then on. The clock
    /// of the client may run slow.
    fn renew_client(&mut self, process: usize) {
        let Process { keeper, leases, over, holds, .. } = &self.processes[process];
        let Some(id) = keeper.id() else { return };
        let now = self.processes[process].now(self.time).boot;
        let valid = leases.get(&id).is_some_and(|until| now < *until) && !over.contains(&id);
        let hold = hold_of(id);
        if valid && let (Some(length), true) = (holds.get(&id), self.beliefs.contains_key(&hold)) {
            let until = self.time + *length * 1000 / 999;
            self.beliefs.insert(hold, until);
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    fn later(&mut self, after: Duration, due: DueEvent) {
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
        let record = self.record();
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
            holds: BTreeMap::new(),
            shown: self.states.len() - 1,
        });
        let process = self.processes.len() - 1;
        self.tell(process, Event::Holds(Arc::clone(&self.state().holds)));
        self.later(Duration::ZERO, DueEvent::Tick(process));
        let leads = self.below(3) > 0;
        self.tell(process, Event::Leads(leads));
        self.tell(process, Event::Reclaimed);
        // It meets the members that there are.
        let known: Vec<_> = self.processes.iter().filter(|it| it.alive).collect();
        let seats: Vec<_> = known.iter().map(|it| SeatId(it.seat as u64)).collect();
        for seat in seats {
            let after = self.millis(1, 300);
            self.later(after, DueEvent::Up(process, seat));
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
                self.later(after, DueEvent::Put(process, put, self.commands.len() - 1));
            }
            Output::Joined(_) => {
                let seat = SeatId(self.processes[process].seat as u64);
                for other in 0..self.processes.len() {
                    if other != process && self.processes[other].alive {
                        let after = self.millis(1, 300);
                        self.later(after, DueEvent::Up(other, seat));
                    }
                }
            }
            Output::Lease(until) => {
                let id = self.processes[process].keeper.id().expect("only members have leases");
                let record = self.record();
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
            Output::Held { fence, refused: None, .. } => {
                self.beliefs.insert(hold_of(MemberId(fence.clock())), self.time);
                self.renew_client(process);
            }
            Output::Left
            | Output::Blocked(_)
            | Output::Held { .. }
            | Output::Dropped { .. }
            | Output::Orphans(_) => {}
        }
    }

    fn happen(&mut self, due: DueEvent) {
        match due {
            DueEvent::Put(process, put, command) => self.put(process, put, command),
            DueEvent::Fault => self.fault(),
            DueEvent::Tick(process)
            | DueEvent::Answer(process, ..)
            | DueEvent::Record(process, _)
            | DueEvent::Holds(process, _)
            | DueEvent::Up(process, _)
                if !self.processes[process].alive => {}
            DueEvent::Tick(process)
            | DueEvent::Answer(process, ..)
            | DueEvent::Record(process, _)
            | DueEvent::Holds(process, _)
            | DueEvent::Up(process, _)
                if self.processes[process].suspended > self.time =>
            {
                let rest = self.processes[process].suspended.saturating_sub(self.time);
                self.later(rest, due);
            }
            DueEvent::Tick(process) => {
                self.later(TICK, DueEvent::Tick(process));
                self.tell(process, Event::Tick);
                self.ask_hold(process);
                self.renew_client(process);
            }
            DueEvent::Answer(process, ..)
                if self.processes[process].cut > self.time && self.below(4) > 0 =>
            {
                let rest = self.processes[process].cut.saturating_sub(self.time);
                let after = self.millis(0, rest.as_millis() as u64 + 1);
                self.later(after, due);
            }
            DueEvent::Answer(process, put, answer) => {
                let answer = answer.map(|at| self.answers[at].clone());
                let answer = answer.map(|answer| self.falsify(process, put, answer));
                self.tell(process, Event::Answer(put, answer));
            }
            DueEvent::Record(process, at) => {
                let record = Arc::clone(&self.states[at].record);
                self.tell(process, Event::Record(record));
            }
            // The store never shows older holds after newer ones.
            DueEvent::Holds(process, at) => {
                if at > self.processes[process].shown {
                    self.processes[process].shown = at;
                    let holds = Arc::clone(&self.states[at].holds);
                    self.tell(process, Event::Holds(holds));
                }
            }
            DueEvent::Up(process, seat) => self.tell(process, Event::Up(seat)),
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
        let before = self.state().clone();
        let mut state = before.clone();
        let command = self.commands[command].clone();
        let answer = state.apply(&command);
        if let (Some(Mistake::ShorterAtOnce), Command::Renew { id, .. }) = (self.mistake, &command)
        {
            let record = Arc::make_mut(&mut state.record);
            let lease_ms = record.lease_ms;
            let renewed = record.members.iter_mut().filter(|member| member.id == *id);
            renewed.for_each(|member| member.lease_ms = lease_ms);
        }
        if state != before {
            self.judge(&before.record, &state.record, &command);
            self.judge_drop(&before, &command);
            self.states.push(state);
            let at = self.states.len() - 1;
            for process in 0..self.processes.len() {
                let slow = self.faults && self.below(10) == 0;
                let after = if slow { self.millis(10, 3000) } else { self.millis(1, 30) };
                self.later(after, DueEvent::Record(process, at));
                // A peer may show the record earlier than the own store shows the holds.
                let more = if slow { self.millis(1, 3000) } else { Duration::ZERO };
                self.later(after + more, DueEvent::Holds(process, at));
            }
        }
        self.answers.push(answer);
        let known = !self.faults || self.below(10) > 0;
        let after = self.millis(1, if self.faults { 400 } else { 30 });
        let answer = known.then_some(self.answers.len() - 1);
        self.later(after, DueEvent::Answer(process, put, answer));
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

    /// No hold is dropped while its client believes in it.
    fn judge_drop(&mut self, before: &GroupState, command: &Command) {
        let Command::Drop(id) = command else { return };
        if before.holds.get(id).is_none() {
            return;
        }
        self.drops += 1;
        if let Some(until) = self.beliefs.remove(id).filter(|until| *until > self.time) {
            let rest = until.saturating_sub(self.time);
            self.blame(format!("the client of {:?} believes for {rest:?}", id.member));
        }
    }

    fn fault(&mut self) {
        if !self.faults {
            return;
        }
        let alive: Vec<usize> =
            (0..self.processes.len()).filter(|it| self.processes[*it].alive).collect();
        let process = alive[self.below(alive.len() as u64) as usize];
        match self.below(8) {
            7 if self.operator => {
                let lease_ms = self.millis(4_000, 40_000).as_millis() as u32;
                self.change_lease(process, lease_ms);
            }
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
            let record = self.record();
            let (number, seat) = (record.number, SeatId(1 + self.below(3)));
            self.commands.push(Command::Remove { number, seat, all: record.seen(seat, None) });
            self.put(process, PutId(u64::MAX), self.commands.len() - 1);
        }
        let after = self.millis(500, 20_000);
        self.later(after, DueEvent::Fault);
    }

    fn change_lease(&mut self, process: usize, lease_ms: u32) {
        self.commands.push(Command::Lease(lease_ms));
        self.put(process, PutId(u64::MAX), self.commands.len() - 1);
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
        self.change_lease(0, LEASE_MS);
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

/// The hold of the client of a member.
fn hold_of(member: MemberId) -> HoldId {
    let name = Name::new("orders").expect("a name");
    HoldId { name, fence: Fence::new(1, member.0), member }
}

#[test]
fn no_member_is_removed_while_it_may_grant_locks_and_everybody_gets_a_seat_at_the_end() {
    let (mut removals, mut successions, mut lapses, mut drops) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut group = Group::new(seed, None);
        group.run_until(group.time + FAULTS);
        group.heal();
        group.run_until(group.time + RECOVERY);
        assert_eq!(group.wrong, None, "seed {seed}");
        let (record, holds) = (group.record(), &group.state().holds);
        let alive: Vec<_> = group.processes.iter().filter(|it| it.alive).collect();
        assert_eq!(alive.len(), 3, "seed {seed}");
        let mut ids: Vec<_> = alive.iter().filter_map(|it| it.keeper.id()).collect();
        ids.sort_unstable();
        let seated: Vec<_> = record.seated().map(|member| member.id).collect();
        assert_eq!(seated, ids, "seed {seed}: {record:#?}");
        assert_eq!(record.members.len(), 3, "seed {seed}: nothing is left of dead processes");
        let kept: Vec<_> = holds.iter().map(|(id, _)| id.member).collect();
        assert_eq!(kept, ids, "seed {seed}: each client has its hold, and there are no orphans");
        for process in alive {
            let (now, until) = (process.now(group.time).boot, process.keeper.deadline());
            assert!(until.is_some_and(|until| until > now + LEASE / 2), "seed {seed}");
        }
        removals += group.removals;
        successions += group.successions;
        lapses += group.lapses;
        drops += group.drops;
    }
    assert!(
        removals > 200 && successions > 200 && lapses > 60 && drops > 200,
        "{removals} {successions} {lapses} {drops}"
    );
}

#[test]
fn planted_mistakes_are_noticed() {
    let mistakes = [
        Mistake::FullLease,
        Mistake::FromArrival,
        Mistake::ShorterAtOnce,
        Mistake::NoWait,
        Mistake::FastClocks,
        Mistake::LateAnswer,
        Mistake::ShortHold,
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
