//! A whole group as one value: processes, disks and links, with everything that can happen to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use doorway_core::{Holder, Mode, NodeId, Start};
use doorway_node::locks::{ClientId, Fault, Lock, LockEffects, Rule};
use doorway_node::messages::{Flush, HeldLock};
use doorway_node::{Fence, Name};

use super::course::Course;
use super::seats::Seat;

/// A rule that is broken, to see that the search finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flaw {
    /// A view starts when most have flushed.
    Majority,
    /// A view starts when its own node has flushed.
    Alone,
    /// A restarted process keeps its epoch.
    SameEpoch,
    /// Messages of older views are taken for new ones.
    OldSteps,
    /// A flush for an older view counts for a newer one.
    OlderFlush,
    /// A view starts though its node has flushed for a newer one.
    Backwards,
    /// A flush says nothing of those inside.
    NoHolders,
    /// The snapshot is taken before the node stops.
    SnapshotFirst,
    /// Clients enter without a message after the node has stopped.
    EnterInFlush,
    /// The snapshot is taken again for each receiver.
    Reread,
    /// The node's own snapshot is taken again as it starts.
    RereadOwn,
    /// A client that leaves between two views is not released in the next.
    ReleaseForgotten,
    /// A client that waits when a view ends is not asked for in the next.
    NotAskedAgain,
    /// Messages of a view that the receiver has not started yet are dropped.
    KeptDropped,
    /// Fences consist of clocks only, without the view.
    BareFence,
    /// A process that is connected for the first time is not told the snapshot.
    FlushOnce,
    /// A node serves although clients of its predecessor have yet to reclaim.
    ServeEarly,
    /// The state machine asks twice, see [`super::seats::Rash`].
    SecondAcquire,
}

/// The parameters of a search, the same in all its states.
pub(crate) struct Setting {
    pub(crate) rule: Rule,
    pub(crate) size: usize,
    pub(crate) shards: usize,
    /// How often the client of each node requests the lock of every shard.
    pub(crate) asks: [u8; 3],
    pub(crate) crashes: u8,
    pub(crate) raises: u8,
    /// Can messages be reordered? A real link never does that.
    pub(crate) overtaking: bool,
    /// May a waiting client give up?
    pub(crate) gives_up: bool,
    /// Do clients outlive the process of their node, and reclaim their locks at the next process?
    pub(crate) reclaims: bool,
    pub(crate) flaw: Option<Flaw>,
}

/// What must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    TwoInside,
    /// A fence that is not higher than the last.
    Fence,
    /// Two nodes start one view with different holders, or a view cannot start so.
    Starts,
    /// A node stops for a view that is not newer than its last.
    Backwards,
    Refused(String),
}

/// What can happen to a node, to a shard of it, or between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Ask(usize, usize),
    GiveUp(usize, usize),
    Leave(usize, usize),
    Enter(usize, usize),
    /// The message at this index arrives, from one node at another.
    Deliver(usize, usize, usize),
    Connect(usize, usize),
    Stop(usize),
    Start(usize),
    Send(usize),
    Crash(usize),
    Restart(usize),
    Raise(usize),
    /// The client of a process that is gone reclaims its lock, or leaves unnoticed.
    Reclaim(usize, usize),
    Depart(usize, usize),
    Serve(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Mail {
    Epochs(Vec<u64>),
    Flush(Flush),
    Step { view: u64, clock: u64, shard: usize, payload: Vec<u8> },
}

impl Hash for Mail {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Epochs(epochs) => (0, epochs).hash(state),
            Self::Flush(Flush { epochs, part, parts, held }) => {
                (1, epochs, part, parts, held).hash(state);
            }
            Self::Step { view, clock, shard, payload } => {
                (2, view, clock, shard, payload).hash(state);
            }
        }
    }
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Shard<M> {
    /// The view that is running, or for which the shard has stopped.
    pub(crate) view: u64,
    pub(crate) running: bool,
    pub(crate) clock: u64,
    /// The fence of the client inside.
    pub(crate) fence: Option<Fence>,
    /// Does the client wait? The lock may have forgotten it by mistake.
    pub(crate) waits: bool,
    pub(crate) lock: Lock<M>,
    /// Messages of a view that has not started yet.
    pub(crate) kept: Vec<(usize, Mail)>,
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Process<C, M> {
    pub(crate) course: C,
    pub(crate) shards: Vec<Shard<M>>,
    /// A view for which some shards have stopped, and what they hold.
    pub(crate) stopping: Option<(Vec<u64>, Vec<HeldLock>, usize)>,
    /// A view that a second receiver has yet to be told of.
    pub(crate) unsent: Option<Vec<u64>>,
    /// Does it wait for the clients of its predecessor?
    pub(crate) reclaiming: bool,
}

impl<C: Course, M: Seat> Process<C, M> {
    pub(crate) fn new(me: usize, epoch: u64, setting: &Setting) -> Self {
        let shard = || Shard {
            view: 0,
            running: false,
            clock: 0,
            fence: None,
            waits: false,
            lock: Lock::default(),
            kept: Vec::new(),
        };
        let course = C::new(me, setting.size, epoch, setting.flaw);
        let shards = (0..setting.shards).map(|_| shard()).collect();
        Self { course, shards, stopping: None, unsent: None, reclaiming: false }
    }

    /// What one shard holds.
    pub(crate) fn holding(&self, shard: usize, rule: &Rule) -> Option<HeldLock> {
        let (mode, permits) = self.shards[shard].lock.holding(rule)?;
        Some(HeldLock { lock: name(shard), mode, permits })
    }
}

/// Every shard has one lock here.
pub(crate) fn name(shard: usize) -> Name {
    Name::new(["a", "b"][shard]).expect("a letter is a name")
}

/// The only client of a node's shard.
pub(crate) const CLIENT: ClientId = ClientId(0);

/// The clients inside by the liberal algorithm in one view, and how many have entered.
pub(crate) type Instance = (BTreeSet<usize>, u64);

/// Up to three nodes with up to two shards each.
pub(crate) struct World<C, M> {
    pub(crate) setting: Rc<Setting>,
    pub(crate) disks: [u64; 3],
    pub(crate) nodes: [Option<Rc<Process<C, M>>>; 3],
    /// From each node to each.
    pub(crate) links: [[VecDeque<Mail>; 3]; 3],
    pub(crate) connected: [[bool; 3]; 3],
    pub(crate) asks: [[u8; 2]; 3],
    pub(crate) crashes: u8,
    pub(crate) raises: u8,
    /// The fences of clients that are inside, by a process that is gone.
    pub(crate) orphans: [[Option<Fence>; 2]; 3],
    /// The last fence of each shard.
    pub(crate) last: [u64; 2],
    pub(crate) instances: BTreeMap<(usize, u64), Instance>,
    /// The holders of views that some nodes may yet start.
    pub(crate) starts: BTreeMap<u64, (Vec<u64>, Vec<Vec<HeldLock>>)>,
}

impl<C: Clone, M: Clone> Clone for World<C, M> {
    fn clone(&self) -> Self {
        Self {
            setting: Rc::clone(&self.setting),
            disks: self.disks,
            nodes: self.nodes.clone(),
            links: self.links.clone(),
            connected: self.connected,
            asks: self.asks,
            crashes: self.crashes,
            raises: self.raises,
            orphans: self.orphans,
            last: self.last,
            instances: self.instances.clone(),
            starts: self.starts.clone(),
        }
    }
}

impl<C: Hash, M: Hash> Hash for World<C, M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.disks, &self.nodes, &self.links, &self.connected).hash(state);
        (&self.asks, self.crashes, self.raises, &self.orphans, &self.last).hash(state);
        (&self.instances, &self.starts).hash(state);
    }
}

impl<C: Course, M: Seat> World<C, M> {
    /// A group in which nothing has been connected yet.
    pub(crate) fn new(setting: Setting) -> Self {
        let size = setting.size;
        let node = |me| (me < size).then(|| Rc::new(Process::new(me, 1, &setting)));
        Self {
            disks: std::array::from_fn(|me| u64::from(me < size)),
            nodes: std::array::from_fn(node),
            links: Default::default(),
            connected: Default::default(),
            asks: setting.asks.map(|asks| [asks; 2]),
            crashes: setting.crashes,
            raises: setting.raises,
            orphans: Default::default(),
            last: [0; 2],
            instances: BTreeMap::new(),
            starts: BTreeMap::new(),
            setting: Rc::new(setting),
        }
    }

    pub(crate) fn flawed(&self, flaw: Flaw) -> bool {
        self.setting.flaw == Some(flaw)
    }

    /// A process that lives.
    pub(crate) fn process(&mut self, node: usize) -> &mut Process<C, M> {
        Rc::make_mut(self.nodes[node].as_mut().expect("only what lives does something"))
    }

    pub(crate) fn shard(&mut self, node: usize, shard: usize) -> &mut Shard<M> {
        &mut self.process(node).shards[shard]
    }

    /// What is sent to a process that is not connected is lost, as with a link.
    pub(crate) fn send(&mut self, from: usize, to: usize, mail: Mail) {
        if self.connected[from][to] {
            self.links[from][to].push_back(mail);
        }
    }

    pub(crate) fn others(&self, node: usize) -> impl Iterator<Item = usize> + use<C, M> {
        (0..self.setting.size).filter(move |other| *other != node)
    }

    /// Do something with a lock, and carry out what follows.
    pub(crate) fn touch(
        &mut self,
        node: usize,
        shard: usize,
        act: impl FnOnce(&mut Lock<M>, &Rule, &mut LockEffects) -> Result<(), Fault>,
    ) -> Result<(), Wrong> {
        let setting = Rc::clone(&self.setting);
        let mut moves = LockEffects::default();
        let acted = act(&mut self.shard(node, shard).lock, &setting.rule, &mut moves);
        // A node drops what it refuses. Without flaws nothing is ever refused.
        if let (Err(fault), None) = (acted, setting.flaw) {
            return Err(Wrong::Refused(fault.to_string()));
        }
        let view = self.shard(node, shard).view;
        if M::LIBERAL && self.shard(node, shard).running {
            let held = self.shard(node, shard).lock.machine().is_some_and(|m| m.held() > 0);
            let instance = self.instances.entry((shard, view)).or_default();
            instance.0.remove(&node);
            instance.0.extend(held.then_some(node));
            instance.1 += moves.granted.len() as u64;
            self.shard(node, shard).clock = self.instances[&(shard, view)].1;
        } else {
            self.shard(node, shard).clock += moves.granted.len() as u64;
        }
        let clock = self.shard(node, shard).clock;
        if !moves.granted.is_empty() {
            let fence = Fence::new(view, clock);
            self.shard(node, shard).fence = Some(fence);
            self.shard(node, shard).waits = false;
            self.judge(shard)?;
            let number = if self.flawed(Flaw::BareFence) { clock } else { fence.get() };
            if number <= std::mem::replace(&mut self.last[shard], number) {
                return Err(Wrong::Fence);
            }
        }
        // A shard that has stopped sends nothing, even if clients enter by mistake.
        let running = self.shard(node, shard).running;
        for (to, payload) in moves.sends.into_iter().filter(|_| running) {
            let payload = payload.to_vec();
            self.send(node, to.index(), Mail::Step { view, clock, shard, payload });
        }
        Ok(())
    }

    fn judge(&self, shard: usize) -> Result<(), Wrong> {
        let inside = self.nodes.iter().flatten().filter(|node| node.shards[shard].fence.is_some());
        let orphans = self.orphans.iter().filter(|orphans| orphans[shard].is_some());
        if inside.count() + orphans.count() > 1 { Err(Wrong::TwoInside) } else { Ok(()) }
    }

    /// Start one shard with the holders that all members have declared.
    pub(crate) fn begin(
        &mut self,
        node: usize,
        shard: usize,
        number: u64,
        held: &[Vec<HeldLock>],
    ) -> Result<(), Wrong> {
        let setting = Rc::clone(&self.setting);
        let holder = |(by, held): (usize, &Vec<HeldLock>)| {
            let HeldLock { mode, permits, .. } =
                held.iter().find(|held| held.lock == name(shard))?;
            Some(Holder { node: NodeId::at(by), mode: *mode, permits: *permits })
        };
        let holders = held.iter().enumerate().filter_map(holder).collect();
        let start = Start { holders, floor: 0 };
        if start.check(&setting.rule.info, &setting.rule.group).is_err() {
            return Err(Wrong::Starts);
        }
        if M::LIBERAL {
            let inside = start.holders.iter().map(|holder| holder.node.index()).collect();
            self.instances.entry((shard, number)).or_insert((inside, 0));
        }
        let place = self.shard(node, shard);
        (place.view, place.running, place.clock) = (number, true, 0);
        let kept = std::mem::take(&mut place.kept);
        self.touch(node, shard, |lock, rule, out| {
            let machine = M::begin(node, &rule.group, &start, &mut out.sends)?;
            lock.start(rule, Box::new(machine), out)
        })?;
        for (from, mail) in kept {
            self.step(from, node, mail)?;
        }
        Ok(())
    }

    /// A message of an algorithm has arrived, or its view has begun.
    pub(crate) fn step(&mut self, from: usize, to: usize, mail: Mail) -> Result<(), Wrong> {
        let Mail::Step { view, clock, shard, ref payload } = mail else { return Ok(()) };
        let (old, dropped) = (self.flawed(Flaw::OldSteps), self.flawed(Flaw::KeptDropped));
        let place = self.shard(to, shard);
        if place.running && (view == place.view || (old && view < place.view)) {
            place.clock = place.clock.max(clock);
            let from = NodeId::at(from);
            return self.touch(to, shard, |lock, rule, out| lock.receive(rule, from, payload, out));
        }
        // A node that runs a view knows that all have stopped for it. So a message of any view but
        // the one for which this shard waits is useless: it is older, or for a predecessor.
        if view == place.view && !place.running && !dropped {
            place.kept.push((from, mail));
        }
        Ok(())
    }

    /// A client requests the lock, always exclusively here.
    pub(crate) fn ask(&mut self, node: usize, shard: usize) -> Result<(), Wrong> {
        self.asks[node][shard] -= 1;
        self.shard(node, shard).waits = true;
        self.touch(node, shard, |lock, rule, out| lock.acquire(rule, CLIENT, Mode::Exclusive, out))
    }
}
