//! A group of up to three seats as one value: the shipped record, shipped state machines and
//! shards, and the store, network, leases and clients around them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_node::locks::{
    ClientId, LockRequest, Rule, RuleBook, Seating, Shard, ShardEffects, Slot,
};
use doorway_node::members::{
    AgreedRules, Answer, Command, HoldId, Holds, MemberId, Record, RuleTables, Seat, SeatId,
};
use doorway_node::messages::{Flush, HeldLock, Message};
use doorway_node::views::{AgreedEvent, AgreedNotice, AgreedOutput, AgreedView, AgreedViews};
use doorway_node::{Fence, LockRules, Name};
use doorway_protocol::RuleTable;

use super::mistake::Mistake;
use crate::views_check::arranged::{ArrangedRule, names};

/// What is the same in all states of a search.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// The rule of the lock.
    pub(crate) rule: RuleSource,
    /// The rule that an operator may give it.
    pub(crate) next: Option<RuleSource>,
    pub(crate) size: usize,
    /// How often the client of each seat requests the lock.
    pub(crate) asks: [u8; 3],
    /// Whether the client of each seat asks for a hold: it believes in its grant for longer than
    /// the lease of its node.
    pub(crate) long: [bool; 3],
    /// How many processes are killed.
    pub(crate) kills: u8,
    /// How often the lease of a running process ends.
    pub(crate) lapses: u8,
    /// How many members join besides the first ones.
    pub(crate) ids: u8,
    /// How often a shard asks for a new view.
    pub(crate) bumps: u8,
    /// How many members are evicted.
    pub(crate) evictions: u8,
    /// How many processes end in good order.
    pub(crate) quits: u8,
    /// How often a connection between two running processes breaks.
    pub(crate) cuts: u8,
    /// A connection that has broken stays broken as long as both members live.
    pub(crate) severed: bool,
    /// Can messages be reordered? A real link never does that.
    pub(crate) overtaking: bool,
    pub(crate) mistake: Option<Mistake>,
}

/// What the rule of the lock in a view follows from.
#[derive(Clone, Copy)]
pub(crate) enum RuleSource {
    /// The number of the members.
    Size(fn(usize) -> Rule),
    /// Their names.
    Names(ArrangedRule),
}

impl RuleSource {
    /// The rule in a view of these members.
    pub(crate) fn of(self, members: &[String]) -> Rule {
        match self {
            Self::Size(rule) => rule(members.len()),
            Self::Names(arranged) => arranged.rule(members),
        }
    }

    /// The rule in each view that a group of this size can have. The members of a view are in the
    /// order in which they have joined.
    fn of_all_views(self, size: usize) -> BTreeMap<Vec<String>, Rule> {
        let mut views = vec![Vec::new()];
        let mut next = 0;
        while next < views.len() {
            for name in names(size) {
                if !views[next].contains(&name) {
                    views.push([&views[next][..], &[name]].concat());
                }
            }
            next += 1;
        }
        let views = views.into_iter().skip(1);
        views.map(|members| (members.clone(), self.of(&members))).collect()
    }

    /// The name of the algorithm.
    pub(crate) fn algorithm(self) -> &'static str {
        match self {
            Self::Size(rule) => rule(2).info.name,
            Self::Names(arranged) => arranged.algorithm,
        }
    }
}

/// What must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// Two clients are inside the lock, or more than its rule lets in.
    TwoInside,
    /// A fence is not higher than the last one of the lock.
    Fence,
    /// Two nodes start one view with different members or holders, or a lock cannot start so.
    Starts,
    /// A node refuses what a correct peer or client does.
    Refused(String),
    /// The search has found nothing, although it should.
    NotFound,
}

/// Anything that can happen. The numbers are seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The client requests the lock.
    Ask(usize),
    /// The client releases the lock, or notices that it has lost it.
    Leave(usize),
    /// The lock lingers no longer.
    EndLinger(usize),
    /// The liberal algorithm lets the node enter.
    Enter(usize),
    /// A message arrives: sender, receiver, and its position among the messages under way.
    Deliver(usize, usize, usize),
    /// The connection between two processes is made.
    Connect(usize, usize),
    /// The connection between two processes breaks.
    Cut(usize, usize),
    /// The first process notices that the process of the second seat is gone.
    Notice(usize, usize),
    /// The store shows the process the newest record.
    Learn(usize),
    /// The process stops its shards.
    Perform(usize),
    /// A shard asks for a new view.
    Bump(usize),
    Kill(usize),
    /// The process ends in good order.
    Quit(usize),
    Restart(usize),
    /// The process becomes a member, and gets its first lease.
    Join(usize),
    /// The waiting member takes its seat.
    TakeSeat(usize),
    /// The lease of a running process ends. Nothing has noticed it yet.
    Lapse(usize),
    /// The keeper notices that the membership of its process is over.
    Discard(usize),
    /// The lease of a member ends that no process keeps alive.
    LeaseEnds(MemberId),
    /// All members of the seat are removed.
    Remove(usize),
    /// A waiting member is removed.
    Forget(MemberId),
    Evict(MemberId),
    /// An evicted member gives up its membership.
    GiveUpSeat(usize),
    /// The store applies a command of a process that is gone: its position in the list.
    Late(usize),
    /// A client of a process that is gone takes back its lock.
    Reclaim(usize),
    /// A client of a process that is gone leaves unnoticed.
    Depart(usize),
    /// A process that waits for former holders begins to serve.
    Serve(usize),
    /// The late part of an output that is performed wrongly.
    Delayed(usize),
    /// The store shows the process the newest rules.
    LearnRules(usize),
    /// An operator changes the rules.
    ChangeRules,
    /// The store shows the process the newest holds.
    LearnHolds(usize),
    /// The store agrees on the hold of a client that is inside.
    Hold(usize),
    /// The client is told that it is inside.
    Tell(usize),
    /// The process drops a hold that its client does not need.
    DropOwn(usize),
    /// The process has counted the length of an orphan, and the store drops it.
    CountOver(usize),
    /// The time of a client passes that cannot be renewed any more.
    Expire(usize),
}

/// The client of a running process.
#[derive(Clone, Hash)]
pub(crate) struct Client {
    /// `None` if the shard has forgotten the client by mistake.
    pub(crate) id: Option<ClientId>,
    /// The fence of a client that is inside.
    pub(crate) fence: Option<Fence>,
    /// The member whose lease covers the client, as long as no record has confirmed its claim.
    /// Otherwise the lease of its own process covers it.
    pub(crate) by: Option<MemberId>,
    pub(crate) promise: Promise,
}

/// How far the promise to a client has got.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Promise {
    /// The lease of the node bounds it.
    Short,
    /// It is longer. The group has not agreed on it yet.
    Asked,
    /// The group has agreed on it under this member, and the client does not know.
    Held(MemberId),
    /// The client believes in it. The group has agreed on it under this member.
    Told(Option<MemberId>),
}

/// A client that is inside by a process that is gone, or that could not be told that it has lost
/// its lock. It is inside until the lease of this member ends. Later it may still try to reclaim.
#[derive(Clone, Hash)]
pub(crate) struct Orphan {
    pub(crate) fence: Fence,
    pub(crate) by: MemberId,
    /// It believes in its grant for longer, until its time has passed.
    pub(crate) long: bool,
}

/// A process of a seat.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) incarnation: u64,
    pub(crate) views: AgreedViews,
    pub(crate) member: Option<MemberId>,
    /// The number under which the process was evicted, until it has left.
    pub(crate) evicted: Option<MemberId>,
    /// No client has lost a lock by the eviction, so the process may leave at once.
    pub(crate) nothing_lost: bool,
    /// The last number of the process whose membership is over.
    pub(crate) former: Option<MemberId>,
    /// How many memberships of this process are over.
    pub(crate) generation: u64,
    /// The members of the view for which the shard has stopped.
    pub(crate) view: Option<AgreedView>,
    pub(crate) shard: Shard,
    pub(crate) slot: Slot,
    pub(crate) client: Option<Client>,
    /// The outputs that have not been performed yet.
    pub(crate) todo: VecDeque<AgreedOutput>,
    /// The time of the process. It moves only when a lease ends.
    pub(crate) now: Duration,
    /// When its lease ends.
    pub(crate) lease: Duration,
    /// The snapshot, if it was taken too early.
    pub(crate) held: Option<Vec<HeldLock>>,
    /// A snapshot that is sent too late.
    pub(crate) unsent: Option<(SeatId, Flush)>,
    /// The hash of all this, once it is known: most steps change one process only.
    pub(crate) print: OnceCell<u64>,
}

impl Process {
    /// Has the lease of the process ended, and has nothing noticed it yet?
    pub(crate) fn is_over(&self) -> bool {
        self.member.is_some() && self.now >= self.lease
    }

    /// Is the process seated in the newest view that it knows?
    pub(crate) fn is_seated(&self) -> bool {
        self.known().is_some_and(|member| member.since.is_some())
    }

    /// What the process knows about its own membership.
    pub(crate) fn known(&self) -> Option<&doorway_node::members::Member> {
        self.views.record()?.member(self.member?).ok()
    }
}

impl Hash for Process {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let print = self.print.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            (self.incarnation, &self.views, self.member, self.evicted).hash(&mut hasher);
            (self.generation, &self.view, &self.shard, self.slot).hash(&mut hasher);
            (&self.client, &self.todo, self.now, self.lease).hash(&mut hasher);
            (self.former, &self.held, &self.unsent, self.nothing_lost).hash(&mut hasher);
            hasher.finish()
        });
        print.hash(state);
    }
}

/// What one process knows of its connection to another seat.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) up: bool,
    /// The process of the other seat for which messages are kept.
    pub(crate) met: Option<u64>,
    /// The connection broke between these two processes, and cannot be made again.
    pub(crate) severed: bool,
}

/// The seats inside by the liberal algorithm in one view, and the clock of the last entry.
type Instance = (BTreeSet<usize>, u64);

/// The state of the group.
#[derive(Clone, Hash)]
pub(crate) struct World {
    /// What the store has agreed on.
    pub(crate) record: Arc<Record>,
    pub(crate) holds: Arc<Holds>,
    /// The first view with the other rules, once they are changed.
    pub(crate) changed: Option<u64>,
    /// Whether an operator may change the rules.
    pub(crate) changes: bool,
    /// The members whose lease has ended, among those that still matter.
    pub(crate) ended: BTreeSet<MemberId>,
    pub(crate) processes: [Option<Rc<Process>>; 3],
    /// How often a process of each seat was started.
    pub(crate) starts: [u64; 3],
    /// The messages under way, by sender and receiver.
    pub(crate) mail: [[VecDeque<Rc<Message>>; 3]; 3],
    pub(crate) links: [[Link; 3]; 3],
    /// Commands of processes that are gone, which the store may still apply.
    pub(crate) late: Vec<Command>,
    pub(crate) orphans: [Option<Orphan>; 3],
    pub(crate) asks: [u8; 3],
    pub(crate) kills: u8,
    pub(crate) lapses: u8,
    pub(crate) ids: u8,
    pub(crate) bumps: u8,
    pub(crate) evictions: u8,
    pub(crate) quits: u8,
    pub(crate) cuts: u8,
    /// The last fence of the lock.
    pub(crate) last: u64,
    /// By view.
    pub(crate) instances: BTreeMap<u64, Instance>,
    /// The members and holders with which views have started that some nodes may yet start.
    pub(crate) started: BTreeMap<u64, (Vec<SeatId>, Vec<Vec<HeldLock>>)>,
}

/// Rules before and after they are changed. What they mean is in the setting.
pub(crate) fn rules(changed: bool) -> RuleTables {
    let algorithm = if changed { "next" } else { "first" };
    RuleTables(vec![RuleTable::from([("algorithm".to_owned(), algorithm.to_owned())])])
}

/// Rules as a process knows them.
pub(crate) fn agreed(rules: &RuleTables) -> Arc<AgreedRules> {
    let algorithm = rules.0[0]["algorithm"].clone();
    Arc::new(AgreedRules {
        digest: rules.digest(),
        rules: LockRules { rules: Vec::new(), algorithm },
    })
}

/// The only lock.
pub(crate) fn name() -> Name {
    Name::new("a").expect("a letter is a name")
}

pub(crate) fn seat(at: usize) -> SeatId {
    SeatId(at as u64)
}

pub(crate) fn at(seat: SeatId) -> usize {
    seat.0 as usize
}

/// The names of the members of a view.
pub(crate) fn members(view: &AgreedView) -> Vec<String> {
    view.members.iter().map(|(_, name)| name.clone()).collect()
}

/// The rule of some view. Those of other views have as many permits.
fn any(rules: &BTreeMap<Vec<String>, Rule>) -> &Rule {
    rules.values().next().expect("every group has a view")
}

/// A group: what is the same in all its states, and its first state.
pub(crate) struct Seats {
    pub(crate) setting: Setting,
    /// By the members of a view.
    rules: BTreeMap<Vec<String>, Rule>,
    /// By the members of a view, after the change; empty if there is none.
    next_rules: BTreeMap<Vec<String>, Rule>,
    pub(crate) first: World,
}

impl Seats {
    /// A group in which nobody has joined yet.
    pub(crate) fn new(setting: Setting) -> Self {
        let seats = (0..setting.size).map(|at| Seat {
            id: seat(at),
            name: format!("n{at}"),
            address: format!("n{at}:1"),
            voter: true,
        });
        let first = World {
            record: Arc::new(Record::new(1, 10_000, rules(false).digest(), seats.collect())),
            holds: Arc::default(),
            changed: None,
            changes: false,
            ended: BTreeSet::new(),
            processes: [const { None }; 3],
            starts: [0; 3],
            mail: Default::default(),
            links: Default::default(),
            late: Vec::new(),
            orphans: Default::default(),
            asks: [0; 3],
            kills: 0,
            lapses: 0,
            ids: setting.size as u8,
            bumps: 0,
            evictions: 0,
            quits: 0,
            cuts: 0,
            last: 0,
            instances: BTreeMap::new(),
            started: BTreeMap::new(),
        };
        let rules = setting.rule.of_all_views(setting.size);
        let next = setting.next.map(|rule| rule.of_all_views(setting.size));
        let next_rules = next.unwrap_or_default();
        let mut seats = Self { setting, rules, next_rules, first };
        let mut first = seats.first.clone();
        (0..seats.setting.size).for_each(|at| seats.restart(&mut first, at, false));
        seats.first = first;
        seats
    }

    pub(crate) fn has(&self, mistake: Mistake) -> bool {
        self.setting.mistake == Some(mistake)
    }

    pub(crate) fn is_liberal(&self) -> bool {
        any(&self.rules).info.name == "liberal"
    }

    pub(crate) fn others(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.setting.size).filter(move |other| *other != at)
    }

    fn seating(&self, members: Vec<String>, me: NodeId, digest: u64) -> Arc<Seating> {
        let rules = self.book(&members, digest);
        Arc::new(Seating { members, me, rules })
    }

    /// The rules with this hash, in a view of these members.
    pub(crate) fn book(&self, members: &[String], digest: u64) -> RuleBook {
        let changed = digest == rules(true).digest();
        let all = if changed { &self.next_rules } else { &self.rules };
        let book = RuleBook::of_all(all[members].clone());
        if self.setting.next.is_some() { book.agreed(digest) } else { book }
    }

    /// How many clients may be inside in a view.
    fn permits(&self, world: &World, view: u64) -> usize {
        let changed = world.changed.is_some_and(|first| view >= first);
        let rules = if changed { &self.next_rules } else { &self.rules };
        any(rules).group.permits() as usize
    }

    /// How many clients may be inside at any time.
    pub(crate) fn most(&self) -> usize {
        let all = self.rules.values().chain(self.next_rules.values());
        all.map(|rule| rule.group.permits() as usize).max().unwrap_or(1)
    }

    /// Start a process of a seat.
    pub(crate) fn restart(&self, world: &mut World, at: usize, reclaiming: bool) {
        world.starts[at] += 1;
        let members = (0..self.setting.size).map(|at| format!("n{at}")).collect();
        let rules = rules(world.changed.is_some());
        let mut shard = Shard::new(self.seating(members, NodeId::at(at), rules.digest()), 8);
        let slot = shard.open(&name());
        let mut views = AgreedViews::new(seat(at), reclaiming);
        // The rules are on the disk of the process, so it has them from the beginning.
        views.step(AgreedEvent::Rules(agreed(&rules)), &mut VecDeque::new());
        world.processes[at] = Some(Rc::new(Process {
            incarnation: world.starts[at],
            views,
            member: None,
            evicted: None,
            nothing_lost: false,
            former: None,
            generation: 0,
            view: None,
            shard,
            slot,
            client: None,
            todo: VecDeque::new(),
            now: Duration::ZERO,
            lease: Duration::MAX,
            held: None,
            unsent: None,
            print: OnceCell::new(),
        }));
    }

    /// Something happens that may matter for the views of a process.
    pub(crate) fn event(
        &self,
        world: &mut World,
        node: usize,
        event: AgreedEvent,
    ) -> Result<(), Violation> {
        let process = world.process(node);
        process.views.step(event, &mut process.todo);
        self.perform(world, node)
    }

    /// Perform the outputs of a process up to the next one that takes time.
    pub(crate) fn perform(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        loop {
            let todo = &mut world.process(node).todo;
            let Some(output) = todo.pop_front() else { break };
            match output {
                stop @ AgreedOutput::StopShards(..) => {
                    todo.push_front(stop);
                    break;
                }
                start @ AgreedOutput::StartShards(..) if self.has(Mistake::LateStart) => {
                    todo.push_front(start);
                    break;
                }
                AgreedOutput::StartShards(number, held) => self.start(world, node, number, held)?,
                AgreedOutput::Tell(to, message) => self.tell(world, node, to, message),
                AgreedOutput::TellAll(message) => {
                    for other in self.others(node) {
                        world.send(node, other, message.clone());
                    }
                }
                AgreedOutput::Disown(views) => {
                    if !self.has(Mistake::AnyClaim) {
                        self.touch(world, node, |shard, _, _, out| shard.disown(&views, out))?;
                    }
                }
                AgreedOutput::Lapse => {
                    world.leave_untold(node);
                    if !self.has(Mistake::ShardsKept) {
                        let mut lost = true;
                        self.touch(world, node, |shard, _, _, out| lost = shard.discard(out))?;
                        let process = world.process(node);
                        process.nothing_lost = process.evicted.is_some() && !lost;
                    }
                }
                AgreedOutput::ShutDoor(name) => {
                    if !self.has(Mistake::DoorIgnored) {
                        world.process(node).shard.shut_door(&name);
                    }
                }
                AgreedOutput::OpenDoor(name) => {
                    self.touch(world, node, |shard, _, now, out| shard.open_door(&name, now, out))?;
                }
                AgreedOutput::UseRules(rules) => {
                    let process = world.process(node);
                    let seating = process.shard.seating();
                    let (members, me) = (seating.members.clone(), seating.me);
                    let seating = self.seating(members, me, rules.digest);
                    process.shard.use_rules(&seating, &mut ShardEffects::default());
                }
                AgreedOutput::Bump(number) => {
                    world.put(&Command::Bump { number });
                }
                AgreedOutput::End(_) => {
                    return Err(Violation::Refused("a node has ended".to_owned()));
                }
                AgreedOutput::Log(AgreedNotice::Refused(by, error)) => {
                    if self.setting.mistake.is_none() {
                        return Err(Violation::Refused(format!("{by:?}: {error:?}")));
                    }
                }
                AgreedOutput::Log(AgreedNotice::Waits(..) | AgreedNotice::Broken) => {}
            }
        }
        // The lease of the process covers a claim from here on.
        let covered = self.has(Mistake::ClaimsCovered);
        let process = world.process(node);
        let confirmed = process.known().is_some() || (covered && process.member.is_some());
        if let (true, Some(client)) = (confirmed, &mut process.client) {
            client.by = None;
        }
        Ok(())
    }

    fn tell(&self, world: &mut World, node: usize, to: SeatId, message: Message) {
        let last = self.others(node).last();
        match message {
            Message::Flush(flush) if self.has(Mistake::Reread) && last == Some(at(to)) => {
                world.process(node).unsent = Some((to, flush));
            }
            message => world.send(node, at(to), message),
        }
    }

    /// Start a view in the shard of a process.
    pub(crate) fn start(
        &self,
        world: &mut World,
        node: usize,
        number: u64,
        mut held: Vec<Vec<HeldLock>>,
    ) -> Result<(), Violation> {
        let read = self.read(world, node);
        let process = world.process(node);
        let Some(view) = process.view.clone() else { return Ok(()) };
        if self.has(Mistake::RereadOwn) {
            held[view.me.index()] = read;
        }
        let seats = view.members.iter().map(|(seat, _)| *seat).collect();
        let known = (seats, held.clone());
        let same = *world.started.entry(number).or_insert_with(|| known.clone()) == known;
        // What comes of it says more than that it happens.
        if !same && !self.has(Mistake::RulesInPlace) {
            return Err(Violation::Starts);
        }
        let inside = (0..).map(NodeId::at).zip(&held);
        let mut holders: Vec<(NodeId, HeldLock)> = inside
            .flat_map(|(node, held)| held.iter().map(move |held| (node, held.clone())))
            .collect();
        if self.has(Mistake::CrowdIgnored) {
            let book = self.book(&members(&view)[..1], view.rules);
            holders.truncate(book[0].group.permits() as usize);
        }
        if self.is_liberal() {
            let seats = holders.iter().map(|(node, _)| at(view.members[node.index()].0)).collect();
            world.instances.entry(number).or_insert((seats, 0));
        }
        let members = members(&view);
        let late = self.has(Mistake::OldRules) && view.me.index() == 1;
        let digest = if late { rules(false).digest() } else { view.rules };
        let seating = self.seating(members, view.me, digest);
        let mut broken = false;
        self.touch(world, node, |shard, _, now, out| {
            let mut view = number;
            match self.setting.mistake {
                Some(Mistake::FlushFirst) if shard.target() < number => {
                    shard.stop(number);
                }
                Some(Mistake::LateStart) => view = shard.target(),
                _ => {}
            }
            shard.start(view, &seating, holders, now, out);
            broken = !out.refused.is_empty();
        })?;
        if broken { Err(Violation::Starts) } else { Ok(()) }
    }

    /// What the client of a process holds now.
    pub(crate) fn read(&self, world: &World, node: usize) -> Vec<HeldLock> {
        let process = world.processes[node].as_ref().expect("a process that runs");
        let held = process.shard.lock(process.slot).holding(any(&self.rules));
        held.map(|(mode, permits)| HeldLock { lock: name(), mode, permits }).into_iter().collect()
    }

    /// Call the shard of a process, and carry out what follows.
    pub(crate) fn touch(
        &self,
        world: &mut World,
        node: usize,
        act: impl FnOnce(&mut Shard, Slot, Duration, &mut ShardEffects),
    ) -> Result<(), Violation> {
        let mut out = ShardEffects::default();
        let process = world.process(node);
        let (slot, now) = (process.slot, process.now);
        act(&mut process.shard, slot, now, &mut out);
        if let (Some((_, _, fault)), None) = (out.refused.first(), self.setting.mistake) {
            return Err(Violation::Refused(fault.to_string()));
        }
        let shard = &process.shard;
        let (view, held) = (shard.running(), shard.lock(slot).machine().map(|m| m.held() > 0));
        let seats: Vec<usize> =
            process.view.iter().flat_map(|view| &view.members).map(|it| at(it.0)).collect();
        if let (Some(view), Some(held), true) = (view, held, self.is_liberal()) {
            let (inside, _) = world.instances.entry(view).or_default();
            inside.remove(&node);
            inside.extend(held.then_some(node));
        }
        for (to, message) in out.messages {
            world.send(node, seats[to.index()], Message::Algorithm(message));
        }
        self.look(world, node)?;
        if out.overdue && !self.has(Mistake::RoomForgotten) {
            self.event(world, node, AgreedEvent::Overdue)?;
        }
        // The shard tells its node that the lease has ended, and the node tells its keeper.
        if out.lapsed && world.process(node).member.is_some() {
            return self.discard(world, node);
        }
        Ok(())
    }

    /// Find out whether the client of a process is inside now.
    fn look(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let awaited = !self.has(Mistake::HoldNotAwaited);
        let process = world.process(node);
        let Some(Client { id: Some(id), fence, promise, .. }) = &mut process.client else {
            return Ok(());
        };
        let id = *id;
        if fence.is_some() {
            if process.shard.is_lost(id) {
                world.leave_believing(node);
                world.process(node).client = None;
                return self.touch(world, node, |shard, _, now, out| shard.leave(id, now, out));
            }
            return Ok(());
        }
        let entered = match process.shard.poll(id, Waker::noop(), &mut ShardEffects::default()) {
            Poll::Pending => return Ok(()),
            Poll::Ready(Ok(entered)) => entered,
            Poll::Ready(Err(_)) => {
                process.client = None;
                return Ok(());
            }
        };
        *fence = Some(entered);
        if *promise == Promise::Asked && !awaited {
            *promise = Promise::Told(None);
        }
        if self.is_liberal() {
            world.instances.entry(entered.view()).or_default().1 = entered.clock();
        }
        let bare = self.has(Mistake::BareFence);
        let number = if bare { entered.clock() } else { entered.get() };
        let before = std::mem::replace(&mut world.last, number);
        let permits = self.permits(world, entered.view());
        if permits > 1 {
            // Clients that enter at the same time have fences in any order.
            world.last = number.max(before);
        } else if number <= before {
            return Err(Violation::Fence);
        }
        let inside = (0..self.setting.size).filter(|node| world.is_inside(*node)).count();
        if inside > permits { Err(Violation::TwoInside) } else { Ok(()) }
    }

    /// A client requests the lock.
    pub(crate) fn ask(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        world.asks[node] -= 1;
        let mut id = None;
        self.touch(world, node, |shard, slot, now, out| {
            let request = LockRequest { mode: Mode::Exclusive, session: 0, reserve: 0, now };
            id = Some(shard.acquire(slot, request, out).0);
        })?;
        let promise = if self.setting.long[node] { Promise::Asked } else { Promise::Short };
        world.process(node).client = Some(Client { id, fence: None, by: None, promise });
        self.look(world, node)
    }

    /// The membership of a process is over.
    pub(crate) fn discard(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        let record = Arc::clone(&world.record);
        let process = world.process(node);
        let Some(id) = process.member.take() else { return Ok(()) };
        process.generation += 1;
        process.former = Some(id);
        if record.member(id).is_ok_and(|member| member.evicted) {
            process.evicted = Some(id);
        }
        if self.has(Mistake::StateKept) {
            return Ok(());
        }
        if self.has(Mistake::DroppedAtLapse) {
            let own = world.holds.iter().map(|(hold, _)| hold).filter(|hold| hold.member == id);
            for hold in own.cloned().collect::<Vec<_>>() {
                world.put(&Command::Drop(hold));
            }
        }
        self.event(world, node, AgreedEvent::Discarded)
    }
}

impl World {
    /// A process that runs.
    pub(crate) fn process(&mut self, node: usize) -> &mut Process {
        let process = Rc::make_mut(self.processes[node].as_mut().expect("a process that runs"));
        process.print = OnceCell::new();
        process
    }

    /// The store applies a command. Returns its answer.
    pub(crate) fn put(&mut self, command: &Command) -> Answer {
        let record = Arc::make_mut(&mut self.record);
        match command {
            Command::Hold { .. } | Command::Drop(_) => {
                Arc::make_mut(&mut self.holds).apply(record, command)
            }
            _ => record.apply(command),
        }
    }

    /// Put a message on its way. It is dropped if this process of the receiver was never connected.
    pub(crate) fn send(&mut self, from: usize, to: usize, message: Message) {
        let process = self.processes[to].as_ref().map(|process| process.incarnation);
        if process.is_some() && self.links[from][to].met == process {
            self.mail[from][to].push_back(Rc::new(message));
        }
    }

    /// Has the lease of the member ended?
    pub(crate) fn has_ended(&self, id: MemberId) -> bool {
        self.ended.contains(&id)
    }

    /// An evicted member takes the lock from its client before the lease has ended. A client that
    /// cannot be told counts on the lease until it ends.
    fn leave_untold(&mut self, node: usize) {
        self.leave_believing(node);
        let process = self.process(node);
        if let Some(Client { fence: Some(fence), by, .. }) = process.client
            && let Some(by) = by.or(process.evicted)
            && process.now < process.lease
            && self.orphans[node].is_none()
        {
            self.orphans[node] = Some(Orphan { fence, by, long: false });
        }
    }

    /// The client of a process has lost its lock. If it was promised the lock for longer than the
    /// lease of its node, it may not know that.
    pub(crate) fn leave_believing(&mut self, node: usize) {
        let process = self.process(node);
        if let Some(Client { fence: Some(fence), by, promise: Promise::Told(_), .. }) =
            process.client
            && let Some(by) = by.or(process.member).or(process.former)
        {
            self.orphans[node] = Some(Orphan { fence, by, long: true });
        }
    }

    /// The hold that the client of a process has or needs.
    pub(crate) fn hold_of(&self, node: usize, member: MemberId) -> Option<HoldId> {
        let client = self.processes[node].as_ref()?.client.as_ref()?;
        Some(HoldId { name: name(), fence: client.fence?, member })
    }

    /// Does a client believe in this grant that its node cannot renew any more?
    pub(crate) fn is_believed(&self, fence: Fence) -> bool {
        let orphans = self.orphans.iter().flatten();
        let gone = orphans.filter(|orphan| orphan.long).any(|orphan| orphan.fence == fence);
        // A claim is renewed once a record has confirmed it.
        let over = |process: &&Rc<Process>| {
            let client = process.client.as_ref().filter(|it| it.fence == Some(fence));
            let member = process.member.is_some() && !process.is_over();
            client.is_some_and(|client| !member || client.by.is_some())
        };
        gone || self.processes.iter().flatten().any(|process| over(&process))
    }

    /// Is the client of a seat inside, as far as it and everyone else can know?
    pub(crate) fn is_inside(&self, node: usize) -> bool {
        let orphan = self.orphans[node].as_ref();
        let orphan = orphan.is_some_and(|orphan| orphan.long || !self.has_ended(orphan.by));
        let client = self.processes[node].as_ref().is_some_and(|process| {
            let Some(Client { id: Some(id), fence: Some(_), by, promise }) = &process.client else {
                return false;
            };
            if matches!(promise, Promise::Told(_)) {
                return true;
            }
            let covered = by.is_none_or(|by| !self.has_ended(by));
            covered && !process.shard.is_lost(*id) && !process.shard.is_over(process.now)
        });
        orphan || client
    }

    /// The seat whose running process is this member.
    pub(crate) fn process_of(&self, id: MemberId) -> Option<usize> {
        let is = |process: &Option<Rc<Process>>| {
            process.as_ref().is_some_and(|process| process.member == Some(id))
        };
        self.processes.iter().position(is)
    }
}
