//! Processes with shipped keepers around a shipped record, and what can happen to them.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{
    Answer, ClockTimes, Command, Event as KeeperEvent, Holds, Keeper, LONGEST_LEASE_MS, Loss,
    MemberId, Output, PutId, Record, RecordError, Seat, SeatId,
};
use doorway_node::{Fence, Name};
use doorway_search::System;

/// The longest lease: fixed margins help least there.
const LEASE_MS: u32 = LONGEST_LEASE_MS;

/// How many times the clock ticks in a lease.
const TICKS: u32 = 20;

const RULES: u64 = 7;

/// For how many ticks a client believes in its hold after the last answer of its node.
const LENGTH: u8 = 4;

/// The rates of the two clocks of a machine, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rates {
    boot: u32,
    raw: u32,
}

impl Rates {
    /// As slow as the clocks may run.
    pub(crate) const SLOW: Self = Self { boot: 915, raw: 999 };
    /// As fast as the clocks may run.
    pub(crate) const FAST: Self = Self { boot: 1085, raw: 1001 };

    /// What the clocks show when this many ticks have passed.
    fn now(self, ticks: u8) -> ClockTimes {
        let at = |rate: u32| {
            Duration::from_millis(
                u64::from(LEASE_MS / TICKS) * u64::from(ticks) * u64::from(rate) / 1000,
            )
        };
        ClockTimes { boot: at(self.boot), raw: at(self.raw) }
    }
}

/// A rule that is broken around the keepers, which themselves are never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A node counts its full lease: it is told a lease so long that 0.9 of it are the full lease.
    FullLease,
    /// Both clocks are the one that a time service adjusts.
    OneClock,
    /// The clocks of those who wait run a fifth too fast.
    FastClocks,
    /// A removal is carried out although the member has renewed.
    BeatsIgnored,
    /// A process enters although clients have not reclaimed their locks.
    NotReclaimed,
    /// A process that was evicted leaves at once: its clock jumps.
    LeavesAtOnce,
    /// A host reports that no client has lost a lock, although one has.
    LossUnnoticed,
    /// The group counts a shorter lease at once, although the member still counts on a longer one.
    ShorterAtOnce,
    /// The group is told a shorter time than the one for which a client believes in its hold.
    ShortHold,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A member is gone whose lease has not ended.
    Early,
    /// A process enters although clients of its predecessor have not reclaimed their locks.
    Unclaimed,
    /// A hold is dropped although its client believes in it.
    Dropped,
    /// Nothing: what was looked for has happened.
    Seen,
}

/// What has to happen somewhere, so that a search is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Removed,
    Succeeded,
    Lapsed,
    Left,
    /// A process proposes to leave although its lease has not ended.
    LeavesEarly,
    Dropped,
}

/// The hold of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientHold {
    #[default]
    None,
    /// It ends some time after the last answer of the node.
    Limited,
    Endless,
}

/// What can happen, and how often.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setting {
    pub(crate) ticks: u8,
    pub(crate) rates: [Rates; 2],
    pub(crate) kills: u8,
    pub(crate) starts: u8,
    pub(crate) stops: u8,
    pub(crate) cuts: u8,
    /// How often a process loses contact with the store.
    pub(crate) losses: u8,
    /// How often an operator makes the lease shorter.
    pub(crate) changes: u8,
    /// How often an operator removes a machine.
    pub(crate) drops: u8,
    /// How often the clients of a process release all locks, until they enter again.
    pub(crate) releases: u8,
    /// How many commands or answers are late.
    pub(crate) late: u8,
    /// The hold of a client.
    pub(crate) hold: ClientHold,
    /// Whether everything else that is sent arrives in the order of the seats.
    pub(crate) ordered: bool,
    pub(crate) mistake: Option<Mistake>,
    /// The search ends when this has happened.
    pub(crate) until: Option<Event>,
}

impl Default for Rates {
    fn default() -> Self {
        Self { boot: 1000, raw: 1000 }
    }
}

/// A command or an answer that is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Letter {
    put: PutId,
    content: Content,
    late: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Content {
    Command(Command),
    Answer(Answer),
}

/// A promise that this member may grant locks until its boot clock shows this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Promise {
    seat: usize,
    id: MemberId,
    until: Duration,
    /// The process lives that has made it.
    kept: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is so or not by itself")]
struct Process {
    keeper: Keeper,
    stopped: bool,
    /// Nothing passes between it and the store.
    isolated: bool,
    reclaimed: bool,
    /// No client of it is inside, and none of its predecessor's has reclaimed a lock here.
    idle: bool,
}

/// Everything that the future depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    time: u8,
    record: Arc<Record>,
    holds: Arc<Holds>,
    /// When the node of the client with a hold may have answered it last.
    answered: u8,
    processes: [Option<Process>; 2],
    /// The letters between each process and the store. Those of a process that has ended stay.
    letters: [Vec<Letter>; 2],
    promises: Vec<Promise>,
    linked: bool,
    kills: u8,
    starts: u8,
    stops: u8,
    cuts: u8,
    losses: u8,
    changes: u8,
    drops: u8,
    releases: u8,
    late: u8,
    incarnations: u8,
}

/// One thing that can happen. The number is that of a seat.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Tick,
    /// The letter at this place arrives.
    Arrive(usize, usize),
    /// The letter at this place will be late.
    Delay(usize, usize),
    Learn(usize),
    Kill(usize),
    Start(usize),
    Stop(usize),
    Continue(usize),
    Reclaim(usize),
    Sever,
    Isolate(usize),
    Reconnect(usize),
    ShortenLease,
    /// An operator removes the machine.
    Drop(usize),
    /// The clients of the process release all locks.
    Release(usize),
    /// A client of the process enters.
    Enter(usize),
}

/// The system.
pub(crate) struct Keepers {
    setting: Setting,
    first: World,
}

/// Two seated members.
pub(crate) fn running(setting: Setting) -> Keepers {
    let seat = |number: u64| Seat {
        id: SeatId(number),
        name: format!("n{number}"),
        address: format!("n{number}:7001"),
        voter: true,
    };
    let record = Arc::new(Record::new(1, LEASE_MS, RULES, vec![seat(0), seat(1)]));
    let world = World {
        time: 0,
        record,
        holds: Arc::default(),
        answered: 0,
        processes: [None, None],
        letters: [vec![], vec![]],
        promises: vec![],
        linked: true,
        kills: 0,
        starts: 2,
        stops: 0,
        cuts: 0,
        losses: 0,
        changes: 0,
        drops: 0,
        releases: 0,
        late: 0,
        incarnations: 0,
    };
    // No mistake counts before the group runs.
    let keepers =
        Keepers { setting: Setting { mistake: None, until: None, ..setting }, first: world };
    let mut world = keepers.first.clone();
    let is_quiet = |world: &World| {
        let is_prompt = |action: &Action| matches!(action, Action::Arrive(..) | Action::Learn(_));
        world.record.seated().count() == 2 && !keepers.actions(world).iter().any(is_prompt)
    };
    let mut asked = setting.hold == ClientHold::None;
    while !is_quiet(&world) || !asked {
        if is_quiet(&world) {
            let is_short = setting.mistake == Some(Mistake::ShortHold);
            let length = if is_short { 1 } else { LENGTH };
            let length_ms = (is_short || setting.hold == ClientHold::Limited)
                .then(|| u64::from(LEASE_MS / TICKS) * u64::from(length));
            let (name, fence) = (Name::new("x").expect("a name"), Fence::new(1, 1));
            let (now, hold) =
                (keepers.now(&world, 1), KeeperEvent::Hold { name, fence, length_ms });
            keepers.step(&mut world, 1, now, hold).expect("nothing goes wrong yet");
            asked = true;
            continue;
        }
        let order = |action: &Action| match action {
            Action::Start(_) => 0,
            Action::Reclaim(_) => 1,
            Action::Arrive(..) => 2,
            Action::Learn(_) => 3,
            _ => 4,
        };
        let action = keepers.actions(&world).into_iter().min_by_key(order).expect("not stuck");
        keepers.apply(&mut world, action).expect("nothing goes wrong yet");
    }
    let Setting { kills, starts, stops, cuts, losses, changes, drops, releases, late, .. } =
        setting;
    (world.kills, world.starts, world.stops) = (kills, starts, stops);
    (world.cuts, world.losses, world.changes, world.late) = (cuts, losses, changes, late);
    (world.drops, world.releases) = (drops, releases);
    world.answered = world.time;
    Keepers { setting: Setting { ticks: world.time + setting.ticks, ..setting }, first: world }
}

impl Keepers {
    fn has(&self, mistake: Mistake) -> bool {
        self.setting.mistake == Some(mistake)
    }

    /// What the clocks of a machine show.
    fn now(&self, world: &World, node: usize) -> ClockTimes {
        let mut rates = self.setting.rates[node];
        if self.has(Mistake::FastClocks) && node == 0 {
            rates = Rates { boot: 1200, raw: 1200 };
        }
        let mut now = rates.now(world.time);
        if self.has(Mistake::OneClock) {
            now.raw = now.boot;
        }
        now
    }

    fn seen(&self, event: Event) -> Result<(), Violation> {
        if self.setting.until == Some(event) { Err(Violation::Seen) } else { Ok(()) }
    }

    /// Let a keeper know of something, and carry out what it decides.
    fn step(
        &self,
        world: &mut World,
        node: usize,
        now: ClockTimes,
        event: KeeperEvent,
    ) -> Result<(), Violation> {
        let Some(process) = &mut world.processes[node] else { return Ok(()) };
        let mut out = Vec::new();
        let nothing_lost = event == KeeperEvent::NothingLost;
        process.keeper.step(now, event, &mut out);
        let (id, reclaimed, isolated) = (process.keeper.id(), process.reclaimed, process.isolated);
        for output in out {
            match output {
                Output::Put(..) if isolated => {}
                Output::Put(put, command) => {
                    if matches!(command, Command::Enter { .. }) && !reclaimed {
                        return Err(Violation::Unclaimed);
                    }
                    if matches!(command, Command::Leave { .. }) && nothing_lost {
                        self.seen(Event::LeavesEarly)?;
                    }
                    let content = Content::Command(command);
                    world.letters[node].push(Letter { put, content, late: false });
                }
                Output::Lease(until) => {
                    let Some(id) = id else { continue };
                    world.promises.retain(|promise| promise.id != id);
                    world.promises.push(Promise { seat: node, id, until, kept: true });
                }
                Output::Discard(why) => {
                    let idle = world.processes[node].as_ref().is_some_and(|process| process.idle);
                    if idle {
                        // Nobody counts on what the process may have granted. What clients hold by
                        // the process before it, they have not reclaimed here.
                        world.promises.retain(|promise| promise.seat != node || !promise.kept);
                    }
                    world.orphan(node);
                    if why == Loss::Lapsed {
                        self.seen(Event::Lapsed)?;
                    }
                    if self.has(Mistake::LeavesAtOnce)
                        && matches!(why, Loss::Refused(RecordError::Evicted(_)))
                    {
                        let later = ClockTimes { boot: now.boot * 2, raw: now.raw };
                        self.step(world, node, later, KeeperEvent::Tick)?;
                    }
                    if idle || self.has(Mistake::LossUnnoticed) {
                        self.step(world, node, now, KeeperEvent::NothingLost)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The store applies a command.
    fn put(&self, world: &mut World, command: Command) -> Result<Answer, Violation> {
        let before = Arc::clone(&world.record);
        let mut command = command;
        if self.has(Mistake::BeatsIgnored)
            && let Command::Remove { number, seat, all } = &mut command
        {
            (*number, *all) = (before.number, before.seen(*seat, None));
        }
        let record = Arc::make_mut(&mut world.record);
        let known = world.holds.iter().count();
        let answer = match &command {
            Command::Hold { .. } | Command::Drop(_) => {
                Arc::make_mut(&mut world.holds).apply(record, &command)
            }
            _ => record.apply(&command),
        };
        if matches!(answer, Answer::Refused(_)) {
            return Ok(answer);
        }
        match &command {
            Command::Drop(_) if world.holds.iter().count() < known => {
                self.seen(Event::Dropped)?;
                // The lease may have ended up to a tick later, and its clock may be slow.
                let believes = world.time <= world.answered + 1 + LENGTH;
                if believes || self.setting.hold == ClientHold::Endless {
                    return Err(Violation::Dropped);
                }
            }
            Command::Remove { .. } => self.seen(Event::Removed)?,
            Command::Leave { .. } => self.seen(Event::Left)?,
            Command::Enter { replaces, inherits: true, .. } if !replaces.is_empty() => {
                self.seen(Event::Succeeded)?;
                // Its clients are clients of the heir now.
                let of = |promise: &Promise| replaces.iter().any(|(id, _)| *id == promise.id);
                world.promises.retain(|promise| promise.kept || !of(promise));
            }
            _ => {}
        }
        Ok(answer)
    }

    /// A letter arrives.
    fn arrive(&self, world: &mut World, node: usize, at: usize) -> Result<(), Violation> {
        let Letter { put, content, late } = world.letters[node].remove(at);
        match content {
            Content::Command(command) => {
                let mut answer = self.put(world, command)?;
                if let Answer::Renewed { lease_ms, .. } = &mut answer
                    && self.has(Mistake::FullLease)
                {
                    *lease_ms = *lease_ms * 10 / 9 + 1;
                }
                if world.processes[node].is_some() {
                    let content = Content::Answer(answer);
                    world.letters[node].push(Letter { put, content, late });
                }
                Ok(())
            }
            Content::Answer(answer) => {
                let now = self.now(world, node);
                self.step(world, node, now, KeeperEvent::Answer(put, Some(answer)))
            }
        }
    }

    fn start(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        world.starts -= 1;
        world.incarnations += 1;
        let nonce = u128::from(world.incarnations) << 32;
        let keeper = Keeper::new(SeatId(node as u64), RULES, nonce, Arc::clone(&world.record));
        world.processes[node] = Some(Process {
            keeper,
            stopped: false,
            isolated: false,
            reclaimed: false,
            idle: false,
        });
        let now = self.now(world, node);
        self.step(world, node, now, KeeperEvent::Leads(true))?;
        self.step(world, node, now, KeeperEvent::Record(Arc::clone(&world.record)))?;
        if self.has(Mistake::NotReclaimed) {
            self.step(world, node, now, KeeperEvent::Reclaimed)?;
        }
        if world.linked && world.processes[1 - node].is_some() {
            for (one, other) in [(node, 1 - node), (1 - node, node)] {
                let now = self.now(world, one);
                self.step(world, one, now, KeeperEvent::Up(SeatId(other as u64)))?;
            }
        }
        Ok(())
    }

    /// The clocks of all machines go on.
    fn tick(&self, world: &mut World) -> Result<(), Violation> {
        world.time += 1;
        for node in 0..2 {
            let now = self.now(world, node);
            // The promises of the past do not matter any more.
            let over = |promise: &Promise| promise.seat == node && promise.until <= now.boot;
            world.promises.retain(|promise| !over(promise));
            if world.processes[node].as_ref().is_some_and(|process| !process.stopped) {
                self.step(world, node, now, KeeperEvent::Tick)?;
            }
        }
        let process = world.processes[1].as_ref().filter(|process| !process.stopped);
        let granted = |promise: &Promise| promise.seat == 1 && promise.kept;
        let mut own = world.holds.iter().filter(|(id, _)| {
            process.is_some_and(|process| process.keeper.id() == Some(id.member))
        });
        if world.promises.iter().any(granted) && own.next().is_some() {
            world.answered = world.time;
        }
        Ok(())
    }

    /// An operator removes a machine, or makes the lease shorter.
    fn operate(&self, world: &mut World, action: &Action) {
        let record = Arc::make_mut(&mut world.record);
        if let Action::Drop(node) = action {
            world.drops -= 1;
            record.apply(&Command::DropSeat(SeatId(*node as u64)));
            return;
        }
        world.changes -= 1;
        let shorter = LEASE_MS / 2;
        record.apply(&Command::Lease(shorter));
        if self.has(Mistake::ShorterAtOnce) {
            record.members.iter_mut().for_each(|member| member.lease_ms = shorter);
        }
    }

    /// The connection between the processes ends.
    fn down(&self, world: &mut World) -> Result<(), Violation> {
        for (one, other) in [(0, 1), (1, 0)] {
            let now = self.now(world, one);
            self.step(world, one, now, KeeperEvent::Down(SeatId(other as u64)))?;
        }
        Ok(())
    }
}

impl World {
    /// The process of a seat has ended, or has lost its membership. Clients that cannot be told
    /// count on its lease until that ends.
    fn orphan(&mut self, node: usize) {
        let own = self.promises.iter_mut().filter(|promise| promise.seat == node);
        own.for_each(|promise| promise.kept = false);
    }
}

impl System for Keepers {
    type State = World;
    type Action = Action;
    type Violation = Violation;

    fn first(&self) -> World {
        self.first.clone()
    }

    fn actions(&self, world: &World) -> Vec<Action> {
        let (mut prompt, mut all) = (Vec::new(), Vec::new());
        for node in 0..2 {
            let process = world.processes[node].as_ref();
            let listens = process.is_some_and(|process| !process.stopped && !process.isolated);
            for (at, letter) in world.letters[node].iter().enumerate() {
                if listens || matches!(letter.content, Content::Command(_)) {
                    let arrives = if letter.late { &mut all } else { &mut prompt };
                    arrives.push(Action::Arrive(node, at));
                    if world.late > 0 && !letter.late {
                        all.push(Action::Delay(node, at));
                    }
                }
            }
            let Some(Process { keeper, stopped, isolated, reclaimed, idle }) = process else {
                all.extend((world.starts > 0).then_some(Action::Start(node)));
                continue;
            };
            if listens && keeper.record().revision < world.record.revision {
                prompt.push(Action::Learn(node));
            }
            // One seat suffices: what happens to the other one is its mirror image.
            let fault = |left: u8| left > 0 && node == 1;
            all.extend(fault(world.kills).then_some(Action::Kill(node)));
            all.extend((fault(world.stops) && !stopped).then_some(Action::Stop(node)));
            all.extend(stopped.then_some(Action::Continue(node)));
            all.extend((fault(world.losses) && !isolated).then_some(Action::Isolate(node)));
            all.extend(isolated.then_some(Action::Reconnect(node)));
            all.extend((!stopped && !reclaimed).then_some(Action::Reclaim(node)));
            let releases = fault(world.releases) && !stopped && !idle;
            all.extend(releases.then_some(Action::Release(node)));
            // Without a lease, nobody enters.
            let grants = keeper.deadline().is_some_and(|end| self.now(world, node).boot < end);
            all.extend((*idle && !stopped && grants).then_some(Action::Enter(node)));
            let belongs = world.record.seat(SeatId(node as u64)).is_some();
            all.extend((fault(world.drops) && belongs).then_some(Action::Drop(node)));
        }
        if world.cuts > 0 && world.processes.iter().all(Option::is_some) {
            all.push(Action::Sever);
        }
        all.extend((world.changes > 0).then_some(Action::ShortenLease));
        if prompt.is_empty() && world.time < self.setting.ticks {
            all.push(Action::Tick);
        }
        if self.setting.ordered {
            prompt.truncate(1);
        }
        prompt.into_iter().chain(all).collect()
    }

    fn apply(&self, world: &mut World, action: Action) -> Result<(), Violation> {
        match action {
            Action::Tick => self.tick(world),
            Action::Arrive(node, at) => self.arrive(world, node, at),
            Action::Delay(node, at) => {
                world.late -= 1;
                world.letters[node][at].late = true;
                Ok(())
            }
            Action::Learn(node) => {
                let (now, record) = (self.now(world, node), Arc::clone(&world.record));
                self.step(world, node, now, KeeperEvent::Record(record))?;
                let holds = Arc::clone(&world.holds);
                self.step(world, node, now, KeeperEvent::Holds(holds))
            }
            Action::Kill(node) => {
                world.kills -= 1;
                world.orphan(node);
                world.processes[node] = None;
                world.letters[node].retain(|it| matches!(it.content, Content::Command(_)));
                self.down(world)
            }
            Action::Start(node) => self.start(world, node),
            Action::Stop(node) => {
                world.stops -= 1;
                world.processes[node].iter_mut().for_each(|process| process.stopped = true);
                Ok(())
            }
            Action::Continue(node) => {
                world.processes[node].iter_mut().for_each(|process| process.stopped = false);
                Ok(())
            }
            Action::Reclaim(node) => {
                if let Some(process) = &mut world.processes[node] {
                    (process.reclaimed, process.idle) = (true, false);
                }
                let now = self.now(world, node);
                self.step(world, node, now, KeeperEvent::Reclaimed)
            }
            Action::Sever => {
                (world.cuts, world.linked) = (world.cuts - 1, false);
                self.down(world)
            }
            Action::Isolate(node) => {
                world.losses -= 1;
                world.processes[node].iter_mut().for_each(|process| process.isolated = true);
                world.letters[node].retain(|it| matches!(it.content, Content::Command(_)));
                Ok(())
            }
            Action::Reconnect(node) => {
                world.processes[node].iter_mut().for_each(|process| process.isolated = false);
                Ok(())
            }
            Action::Release(node) => {
                world.releases -= 1;
                world.processes[node].iter_mut().for_each(|process| process.idle = true);
                Ok(())
            }
            Action::Enter(node) => {
                world.processes[node].iter_mut().for_each(|process| process.idle = false);
                Ok(())
            }
            Action::Drop(_) | Action::ShortenLease => {
                self.operate(world, &action);
                Ok(())
            }
        }
    }

    /// Every member whose lease has not ended is in the record.
    fn check(&self, world: &World) -> Result<(), Violation> {
        let valid = |promise: &&Promise| {
            // By the true clock of the machine, whatever its process believes.
            promise.until > self.setting.rates[promise.seat].now(world.time).boot
        };
        let mut promised = world.promises.iter().filter(valid);
        if promised.all(|promise| world.record.member(promise.id).is_ok()) {
            Ok(())
        } else {
            Err(Violation::Early)
        }
    }
}
