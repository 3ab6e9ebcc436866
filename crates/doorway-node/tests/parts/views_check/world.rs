//! A group of up to three nodes as one value: shipped state machines and shards, and the network,
//! disks and clients around them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_node::link::Incarnation;
use doorway_node::locks::{
    ClientId, KeptWord, LockRequest, Rule, RuleBook, Seating, Shard, ShardEffects, Slot,
};
use doorway_node::messages::{Flush, HeldLock, Message};
use doorway_node::views::{Event, Output, ViewChange};
use doorway_node::{Fence, Name};

use super::mistake::Mistake;

/// What is the same in all states of a search.
#[expect(clippy::struct_excessive_bools, reason = "each can be set on its own")]
pub(crate) struct Setting {
    pub(crate) rule: Rule,
    pub(crate) size: usize,
    pub(crate) shards: usize,
    /// How often the client of each node requests the lock of every shard.
    pub(crate) asks: [u8; 3],
    pub(crate) crashes: u8,
    /// How often a shard asks for a new view.
    pub(crate) raises: u8,
    /// How often a connection between two running nodes breaks.
    pub(crate) cuts: u8,
    /// Can messages be reordered? A real link never does that.
    pub(crate) overtaking: bool,
    /// May a waiting client give up?
    pub(crate) gives_up: bool,
    /// Do clients outlive the process of their node, and reclaim their locks at the next process?
    pub(crate) reclaims: bool,
    /// Does the first node lose its directory whenever it crashes?
    pub(crate) forgets: bool,
    /// How many numbers are reserved for clients, which keep their locks. 0 if they keep nothing.
    pub(crate) reserve: u32,
    pub(crate) mistake: Option<Mistake>,
}

/// What must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// Two clients are inside the same lock.
    TwoInside,
    /// A fence is not higher than the last one of its lock.
    Fence,
    /// Two nodes start one view with different holders, or a lock cannot start so.
    Starts,
    /// A node refuses what a correct peer or client does.
    Refused(String),
}

/// Anything that can happen. The numbers are nodes, and the shard where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The client requests the lock.
    Ask(usize, usize),
    /// The client stops waiting.
    GiveUp(usize, usize),
    /// The client leaves the lock.
    Leave(usize, usize),
    /// The lock lingers no longer.
    EndLinger(usize, usize),
    /// The client that is inside wants to keep the lock.
    Keep(usize, usize),
    /// The client requests a lock that it keeps, or believes to keep.
    EnterAgain(usize, usize),
    /// The client gives back a lock that it keeps, or believes to keep.
    GiveBack(usize, usize),
    /// The liberal algorithm lets the node enter.
    Enter(usize, usize),
    /// A message arrives: sender, receiver, and its position among the messages under way.
    Deliver(usize, usize, usize),
    /// Two nodes begin a handshake: each hears the hello of the other.
    Connect(usize, usize),
    /// The handshake is complete for the first node.
    Up(usize, usize),
    /// The connection between two nodes breaks.
    Cut(usize, usize),
    /// The first node notices that the process of the second one is gone.
    Notice(usize, usize),
    /// The node performs the next part of its outputs: it stops one shard.
    Perform(usize),
    /// A shard asks for a new view.
    Raise(usize),
    /// The disk has stored the next epoch.
    Disk(usize),
    Crash(usize),
    Restart(usize),
    /// A client of a process that is gone takes back its lock.
    Reclaim(usize, usize),
    /// A client of a process that is gone leaves unnoticed.
    Depart(usize, usize),
    /// A node that waits for former holders begins to serve.
    Serve(usize),
    /// The late part of an output that is performed wrongly.
    Late(usize),
}

/// The client of a node for the lock of one shard.
#[derive(Clone, Hash)]
pub(crate) struct Client {
    /// `None` if the shard has forgotten the client by mistake.
    pub(crate) id: Option<ClientId>,
    /// The fence of a client that is inside.
    pub(crate) fence: Option<Fence>,
    pub(crate) kept: Option<KeptLock>,
}

impl Client {
    /// Is the client outside, with a lock that it keeps or believes to keep?
    pub(crate) fn is_outside(&self) -> bool {
        self.fence.is_none() && self.kept.is_some()
    }
}

/// What a client that keeps a lock shares with its node, and what it knows alone.
#[derive(Clone, Hash)]
pub(crate) struct KeptLock {
    pub(crate) word: KeptWord,
    /// Does the node know the word?
    pub(crate) listed: bool,
    /// The fence of the last entry.
    pub(crate) last: Fence,
    pub(crate) left: u32,
}

/// A process of a node.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) incarnation: Incarnation,
    pub(crate) change: ViewChange,
    pub(crate) shards: Vec<Shard>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) clients: Vec<Option<Client>>,
    /// The outputs that have not been performed yet.
    pub(crate) todo: VecDeque<Output>,
    /// What the shards that have stopped held, while others have yet to stop.
    pub(crate) held: Vec<Vec<HeldLock>>,
    /// The epoch is being raised above this one.
    pub(crate) raising: Option<u64>,
    /// A snapshot that is sent too late.
    pub(crate) unsent: Option<Flush>,
    /// The hash of all this, once it is known: most steps change one process only.
    print: OnceCell<u64>,
}

impl Hash for Process {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let print = self.print.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            (self.incarnation, &self.change, &self.shards, &self.slots).hash(&mut hasher);
            (&self.clients, &self.todo, &self.held, self.raising).hash(&mut hasher);
            self.unsent.hash(&mut hasher);
            hasher.finish()
        });
        print.hash(state);
    }
}

/// The hello of a process: its incarnation, and the epochs that it announces.
pub(crate) type Hello = (Incarnation, Vec<u64>);

/// What one node knows of its connection to another.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) stage: Stage,
    /// The process of the other node for which messages are kept.
    pub(crate) met: Option<Incarnation>,
}

/// How far a connection has got.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    #[default]
    Down,
    /// The other node has said this.
    Greeted(Hello),
    Up,
}

/// The clients inside by the liberal algorithm in one view, and the clock of the last entry.
type Instance = (BTreeSet<usize>, u64);

/// The state of the group.
#[derive(Clone, Hash)]
pub(crate) struct World {
    /// The durable epochs.
    pub(crate) disks: [u64; 3],
    /// How often each node has started.
    pub(crate) starts: [u64; 3],
    pub(crate) nodes: [Option<Rc<Process>>; 3],
    /// The messages under way, by sender and receiver.
    pub(crate) mail: [[VecDeque<Rc<Message>>; 3]; 3],
    pub(crate) links: [[Link; 3]; 3],
    pub(crate) asks: [[u8; 2]; 3],
    pub(crate) crashes: u8,
    pub(crate) raises: u8,
    pub(crate) cuts: u8,
    /// The fences of clients that are inside, by a process that is gone.
    pub(crate) orphans: [[Option<Fence>; 2]; 3],
    /// The last fence of each shard.
    pub(crate) last: [u64; 2],
    /// By shard and view.
    pub(crate) instances: BTreeMap<(usize, u64), Instance>,
    /// The epochs and holders with which views have started that some nodes may yet start.
    pub(crate) started: BTreeMap<u64, (Vec<u64>, Vec<Vec<HeldLock>>)>,
}

/// The time at which everything happens. No deadline matters here.
pub(crate) const NOW: Duration = Duration::ZERO;

/// Every shard has one lock here.
pub(crate) fn name(shard: usize) -> Name {
    Name::new(["a", "b"][shard]).expect("a letter is a name")
}

/// A group of nodes: what is the same in all its states, and its first state.
pub(crate) struct Nodes {
    pub(crate) setting: Setting,
    seatings: Vec<Arc<Seating>>,
    pub(crate) first: World,
}

impl Nodes {
    /// A group in which no node is connected yet.
    pub(crate) fn new(setting: Setting) -> Self {
        let members: Vec<String> = (0..setting.size).map(|node| format!("n{node}")).collect();
        let seat = |me| {
            let rules = RuleBook::of_all(setting.rule.clone());
            Arc::new(Seating { members: members.clone(), me: NodeId::at(me), rules })
        };
        let seatings: Vec<_> = (0..setting.size).map(seat).collect();
        let first = World {
            disks: [0; 3],
            starts: [0; 3],
            nodes: [const { None }; 3],
            mail: Default::default(),
            links: Default::default(),
            asks: setting.asks.map(|asks| [asks; 2]),
            crashes: setting.crashes,
            raises: setting.raises,
            cuts: setting.cuts,
            orphans: Default::default(),
            last: [0; 2],
            instances: BTreeMap::new(),
            started: BTreeMap::new(),
        };
        let mut nodes = Self { setting, seatings, first };
        let mut first = nodes.first.clone();
        (0..nodes.setting.size).for_each(|node| nodes.restart(&mut first, node, false));
        nodes.first = first;
        nodes
    }

    pub(crate) fn has(&self, mistake: Mistake) -> bool {
        self.setting.mistake == Some(mistake)
    }

    pub(crate) fn is_liberal(&self) -> bool {
        self.setting.rule.info.name == "liberal"
    }

    pub(crate) fn others(&self, node: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.setting.size).filter(move |other| *other != node)
    }

    /// Start a process of a node.
    pub(crate) fn restart(&self, world: &mut World, node: usize, reclaiming: bool) {
        let first = world.disks[node] == 0;
        if first || !self.has(Mistake::SameEpoch) {
            world.disks[node] += 1;
        }
        world.starts[node] += 1;
        let epoch = world.disks[node];
        // With a fixed seed, the incarnation of a process depends on its epoch alone.
        let fixed = self.has(Mistake::SameEpoch);
        let incarnation = Incarnation(if fixed { epoch } else { world.starts[node] });
        let seating = &self.seatings[node];
        let mut shards: Vec<_> =
            (0..self.setting.shards).map(|_| Shard::new(Arc::clone(seating), 8)).collect();
        let slots = shards.iter_mut().enumerate().map(|(at, shard)| shard.open(&name(at)));
        let slots = slots.collect();
        let me = NodeId::at(node);
        world.nodes[node] = Some(Rc::new(Process {
            incarnation,
            change: ViewChange::new(me, self.setting.size, epoch, reclaiming),
            clients: vec![None; shards.len()],
            shards,
            slots,
            todo: VecDeque::new(),
            held: Vec::new(),
            raising: None,
            unsent: None,
            print: OnceCell::new(),
        }));
    }

    /// Something happens that may matter for the views of a node.
    pub(crate) fn event(
        &self,
        world: &mut World,
        node: usize,
        event: Event,
    ) -> Result<(), Violation> {
        let connects = matches!(event, Event::Up { .. });
        let process = world.process(node);
        let before = process.todo.len();
        process.change.step(NOW, event, &mut process.todo);
        if connects && self.has(Mistake::FlushOnce) {
            let is_flush = |output: &Output| matches!(output, Output::Tell(_, Message::Flush(_)));
            let new = process.todo.split_off(before);
            process.todo.extend(new.into_iter().filter(|output| !is_flush(output)));
        }
        self.perform(world, node)
    }

    /// Perform the outputs of a node up to the next one that takes time.
    pub(crate) fn perform(&self, world: &mut World, node: usize) -> Result<(), Violation> {
        loop {
            let todo = &mut world.process(node).todo;
            match todo.pop_front() {
                None => return Ok(()),
                Some(stop @ Output::StopShards(_)) => {
                    todo.push_front(stop);
                    return Ok(());
                }
                Some(Output::StartShards(started)) => {
                    if self.has(Mistake::LateStart) {
                        todo.push_front(Output::StartShards(started));
                        return Ok(());
                    }
                    self.start(world, node, started)?;
                }
                Some(Output::Tell(to, message)) => world.send(node, to.index(), message),
                Some(Output::TellAll(message)) => self.tell_all(world, node, &message),
                Some(Output::RaiseAbove(epoch)) => world.process(node).raising = Some(epoch),
                Some(Output::Disown(_) | Output::End(_)) => {
                    return Err(Violation::Refused("a lock or a node has ended".to_owned()));
                }
                Some(Output::Log(notice)) => {
                    let refused = !matches!(notice, doorway_node::views::Notice::Waits { .. });
                    if refused && self.setting.mistake.is_none() {
                        return Err(Violation::Refused(format!("{notice:?}")));
                    }
                }
            }
        }
    }

    fn tell_all(&self, world: &mut World, node: usize, message: &Message) {
        for (place, other) in self.others(node).enumerate() {
            match message {
                Message::Flush(flush) if place > 0 && self.has(Mistake::Reread) => {
                    world.process(node).unsent = Some(flush.clone());
                }
                _ => world.send(node, other, message.clone()),
            }
        }
    }

    /// Start a view in all shards of a node.
    pub(crate) fn start(
        &self,
        world: &mut World,
        node: usize,
        started: doorway_node::views::StartedView,
    ) -> Result<(), Violation> {
        let (number, mut held) = (started.view.number(), started.held);
        if self.has(Mistake::RereadOwn) {
            held[node] = self.read(world, node);
        }
        let known = (started.view.epochs().to_vec(), held.clone());
        if *world.started.entry(number).or_insert_with(|| known.clone()) != known {
            return Err(Violation::Starts);
        }
        for shard in 0..self.setting.shards {
            let holders: Vec<(NodeId, HeldLock)> = (0..)
                .map(NodeId::at)
                .zip(&held)
                .flat_map(|(node, held)| held.iter().map(move |held| (node, held.clone())))
                .filter(|(_, held)| held.lock == name(shard))
                .collect();
            if self.is_liberal() {
                let inside = holders.iter().map(|(node, _)| node.index()).collect();
                world.instances.entry((shard, number)).or_insert((inside, 0));
            }
            let mut broken = false;
            self.touch(world, node, shard, |shard, _, out| {
                let mut view = number;
                match self.setting.mistake {
                    Some(Mistake::FlushFirst) if shard.target() < number => {
                        shard.stop(number);
                    }
                    Some(Mistake::LateStart) => view = shard.target(),
                    _ => {}
                }
                shard.start(view, &self.seatings[node], holders, NOW, out);
                broken = !out.refused.is_empty();
            })?;
            if broken {
                return Err(Violation::Starts);
            }
        }
        Ok(())
    }

    /// What the clients of a node hold now.
    pub(crate) fn read(&self, world: &World, node: usize) -> Vec<HeldLock> {
        let process = world.nodes[node].as_ref().expect("a process that runs");
        let shards = process.shards.iter().zip(&process.slots).enumerate();
        let held = shards.filter_map(|(at, (shard, slot))| {
            let (mode, permits) = shard.lock(*slot).holding(&self.setting.rule)?;
            Some(HeldLock { lock: name(at), mode, permits })
        });
        held.collect()
    }

    /// Call a shard, and carry out what follows.
    pub(crate) fn touch(
        &self,
        world: &mut World,
        node: usize,
        shard: usize,
        act: impl FnOnce(&mut Shard, Slot, &mut ShardEffects),
    ) -> Result<(), Violation> {
        let mut out = ShardEffects::default();
        let process = world.process(node);
        let slot = process.slots[shard];
        act(&mut process.shards[shard], slot, &mut out);
        let client = &mut process.clients[shard];
        process.shards[shard].release_revoked(NOW, &mut out, |revoked| {
            let client = client.as_mut().filter(|client| client.id == Some(revoked));
            let Some(Client { id, kept: Some(kept), .. }) = client else { return false };
            if !std::mem::take(&mut kept.listed) || self.has(Mistake::NotRevoked) {
                return false;
            }
            let outside = kept.word.revoke();
            if !outside && self.has(Mistake::ReleasedInside) {
                *id = None;
                return true;
            }
            outside
        });
        if let (Some((_, _, fault)), None) = (out.refused.first(), self.setting.mistake) {
            return Err(Violation::Refused(fault.to_string()));
        }
        let place = &process.shards[shard];
        let (view, held) = (place.running(), place.lock(slot).machine().map(|m| m.held() > 0));
        if let (Some(view), Some(held), true) = (view, held, self.is_liberal()) {
            let (inside, _) = world.instances.entry((shard, view)).or_default();
            inside.remove(&node);
            inside.extend(held.then_some(node));
        }
        for (to, message) in out.messages {
            world.send(node, to.index(), Message::Algorithm(message));
        }
        self.look(world, node, shard)
    }

    /// Find out whether the client of a shard is inside now, and check that it may be.
    fn look(&self, world: &mut World, node: usize, shard: usize) -> Result<(), Violation> {
        let process = world.process(node);
        let place = &mut process.shards[shard];
        let Some(client @ Client { id: Some(_), .. }) = &mut process.clients[shard] else {
            return Ok(());
        };
        if client.is_outside() {
            return Ok(());
        }
        let Client { id: Some(id), fence, .. } = client else { return Ok(()) };
        if fence.is_some() {
            if place.is_lost(*id) {
                process.clients[shard] = None;
            }
            return Ok(());
        }
        let entered = match place.poll(*id, Waker::noop(), &mut ShardEffects::default()) {
            Poll::Pending => return Ok(()),
            Poll::Ready(Ok(entered)) => entered,
            Poll::Ready(Err(_)) => {
                process.clients[shard] = None;
                return Ok(());
            }
        };
        *fence = Some(entered);
        self.entered(world, shard, entered)
    }

    /// Check that the client that has just entered may be inside.
    pub(crate) fn entered(
        &self,
        world: &mut World,
        shard: usize,
        entered: Fence,
    ) -> Result<(), Violation> {
        if self.is_liberal() {
            let instance = world.instances.entry((shard, entered.view())).or_default();
            instance.1 = entered.clock();
        }
        if world.inside(shard) > 1 {
            return Err(Violation::TwoInside);
        }
        let bare = self.has(Mistake::BareFence);
        let number = if bare { entered.clock() } else { entered.get() };
        if number <= std::mem::replace(&mut world.last[shard], number) {
            return Err(Violation::Fence);
        }
        Ok(())
    }

    /// A client requests the lock of a shard.
    pub(crate) fn ask(
        &self,
        world: &mut World,
        node: usize,
        shard: usize,
    ) -> Result<(), Violation> {
        world.asks[node][shard] -= 1;
        let mut id = None;
        self.touch(world, node, shard, |shard, slot, out| {
            let (mode, reserve) = (Mode::Exclusive, self.setting.reserve);
            let request = LockRequest { mode, session: 0, reserve, now: NOW };
            id = Some(shard.acquire(slot, request, out).0);
        })?;
        world.process(node).clients[shard] = Some(Client { id, fence: None, kept: None });
        self.look(world, node, shard)
    }
}

impl World {
    /// A process that runs.
    pub(crate) fn process(&mut self, node: usize) -> &mut Process {
        let process = Rc::make_mut(self.nodes[node].as_mut().expect("a process that runs"));
        process.print = OnceCell::new();
        process
    }

    /// Put a message on its way. It is dropped if this process of the receiver was never connected.
    pub(crate) fn send(&mut self, from: usize, to: usize, message: Message) {
        let process = self.nodes[to].as_ref().map(|process| process.incarnation);
        if process.is_none() || self.links[from][to].met != process {
            return;
        }
        let mail = &mut self.mail[from][to];
        // Epochs only grow, so sending the same ones twice in a row changes nothing.
        let is_epochs = |message: &&Rc<Message>| matches!(***message, Message::Epochs(_));
        if mail.iter().rfind(is_epochs).is_none_or(|last| **last != message) {
            mail.push_back(Rc::new(message));
        }
    }

    pub(crate) fn is_up(&self, node: usize, other: usize) -> bool {
        self.links[node][other].stage == Stage::Up
    }

    /// How many clients are inside the lock of a shard.
    fn inside(&self, shard: usize) -> usize {
        let clients = self.nodes.iter().flatten().filter_map(|node| node.clients[shard].as_ref());
        let inside = clients.filter(|client| client.fence.is_some()).count();
        inside + self.orphans.iter().filter(|orphans| orphans[shard].is_some()).count()
    }
}
