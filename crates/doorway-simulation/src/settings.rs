//! What the seed draws before a run begins: the group, its clients, and which faults are in play.

use std::ops::RangeInclusive;
use std::time::Duration;

use doorway_node::locks::{Patience, Rule, RuleBook, served};
use doorway_node::{LockRules, RuleConfig};
use doorway_protocol::{Life, Name};

use crate::clock::{Drift, MS, SECOND};
use crate::random::Random;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process of a node is killed, and started again later.
    KillNode,
    /// A node is stopped gracefully, and started again later.
    StopNode,
    /// A node tells its clients to leave, and stops when nothing is held any more. In half of all
    /// cases it stops after a while at the latest.
    DrainNode,
    /// The machine of a node crashes: its processes are gone, and unsynced writes may be lost.
    CrashMachine,
    /// The process of a client is killed.
    KillClient,
    /// The process of a node is suspended.
    PauseNode,
    /// The process of a client is suspended.
    PauseClient,
    /// A machine sleeps with everything on it.
    Sleep,
    /// Two machines cannot reach each other.
    CutPair,
    /// One machine cannot reach another, but is reached by it.
    CutOneWay,
    /// A machine cannot reach any other.
    Isolate,
    /// Everything on the network takes longer.
    Delay,
    /// A connection breaks, perhaps inside a frame, and perhaps without one side noticing.
    Break,
    /// Files cannot grow, or nothing can be written, erased or synced.
    FullDisk,
    /// Writing takes long.
    StalledDisk,
    /// The process of a node is killed, and a record of its ledger is read wrongly after that.
    DamageDisk,
    /// An operator or another client takes a lock from its holder.
    BreakLock,
    /// A connection breaks, and what its client sends over the next one takes so long that the
    /// client may have given up that connection as well.
    LateHello,
    /// A node cannot reach the register of its group, or is not reached by it.
    CutRegister,
    /// The register agrees on nothing.
    LoseQuorum,
    /// Other nodes than before believe that they should propose removals, or none does.
    MoveLeader,
    /// An operator adds a machine to the group, or removes one.
    ChangeSeats,
    /// An operator changes the lease of the members.
    ChangeLease,
    /// A machine crashes, and comes back with the address of another one: clients find its node
    /// there.
    TakeAddress,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 24] = [
        Self::KillNode,
        Self::StopNode,
        Self::DrainNode,
        Self::CrashMachine,
        Self::KillClient,
        Self::PauseNode,
        Self::PauseClient,
        Self::Sleep,
        Self::CutPair,
        Self::CutOneWay,
        Self::Isolate,
        Self::Delay,
        Self::Break,
        Self::FullDisk,
        Self::StalledDisk,
        Self::DamageDisk,
        Self::BreakLock,
        Self::LateHello,
        Self::CutRegister,
        Self::LoseQuorum,
        Self::MoveLeader,
        Self::ChangeSeats,
        Self::ChangeLease,
        Self::TakeAddress,
    ];

    /// How many of them can happen to a group with a fixed list of members: the first ones.
    const FIXED: usize = 18;

    /// How many of them can happen to a group that agrees on its members: the first ones.
    const AGREED: usize = 23;

    /// Faults that belong together. What one of them leaves behind is what another one may meet.
    const THEMES: [&[Self]; 4] = [
        &[
            Self::KillNode,
            Self::StopNode,
            Self::DrainNode,
            Self::KillClient,
            Self::PauseNode,
            Self::PauseClient,
        ],
        &[
            Self::KillNode,
            Self::CrashMachine,
            Self::Sleep,
            Self::FullDisk,
            Self::StalledDisk,
            Self::DamageDisk,
        ],
        &[
            Self::CutPair,
            Self::CutOneWay,
            Self::Isolate,
            Self::Delay,
            Self::Break,
            Self::BreakLock,
            Self::LateHello,
            Self::PauseClient,
        ],
        // For groups that agree on their members.
        &[
            Self::KillNode,
            Self::StopNode,
            Self::CrashMachine,
            Self::PauseNode,
            Self::CutRegister,
            Self::LoseQuorum,
            Self::MoveLeader,
            Self::ChangeSeats,
            Self::ChangeLease,
        ],
    ];

    /// How many themes a group with a fixed list of members has: the first ones.
    const FIXED_THEMES: usize = 3;
}

/// The time to live of a session without a limit: it lives as long as its processes.
const UNLIMITED: Duration = Duration::from_millis(u32::MAX as u64);

/// How a lock can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Exclusive,
    Shared,
    Permits(u32),
}

/// A lock that clients compete for.
#[derive(Clone, Debug)]
pub(crate) struct LockSetting {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
}

/// A client and how it holds its locks.
#[derive(Clone, Debug)]
pub(crate) struct ClientSetting {
    /// The nodes that it may use, in the order in which it tries them.
    pub(crate) nodes: Vec<usize>,
    /// Whether it runs on the machine of its node.
    pub(crate) local: bool,
    pub(crate) life: LifeSetting,
    pub(crate) ttl: Duration,
    /// Whether it keeps locks until somebody else wants them.
    pub(crate) keep: bool,
    /// Whether some of its locks are without end: held until they are released or broken.
    pub(crate) endless: bool,
    /// The lock that it asks for most of the time.
    pub(crate) favourite: Option<usize>,
    pub(crate) patience: Duration,
    /// The mean times between two requests, and inside, in nanoseconds.
    pub(crate) thinks: u64,
    pub(crate) holds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifeSetting {
    Connection,
    /// With a connection that child processes inherit.
    Inherited,
    Process,
    Lease,
    /// Without a session: calls over HTTP.
    Http,
}

impl LifeSetting {
    pub(crate) fn life(self, pid: u32) -> Life {
        match self {
            Self::Connection => Life::Connection { inherited: false },
            Self::Inherited => Life::Connection { inherited: true },
            Self::Process => Life::Process { pid },
            Self::Lease | Self::Http => Life::Lease,
        }
    }
}

/// A group that agrees on its members.
#[derive(Clone, Debug)]
pub(crate) struct AgreedSetting {
    /// How many nodes have a seat from the beginning.
    pub(crate) founders: usize,
    /// The lease of members, in milliseconds.
    pub(crate) lease_ms: u32,
    /// How many of a thousand messages to and from the register are lost, and how many take long.
    pub(crate) lost: u64,
    pub(crate) slow: u64,
}

/// How one node of several stays away when all faults have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// Its machine never comes back.
    Burnt,
    /// Its machine runs, and reaches no other machine.
    Isolated,
    /// Its process is suspended.
    Suspended,
}

/// Everything that is drawn before a run begins.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) nodes: usize,
    /// None if the list of members is fixed.
    pub(crate) agreed: Option<AgreedSetting>,
    pub(crate) shards: usize,
    pub(crate) keep_idle: usize,
    /// The rules of the locks, each with the beginning of the names that it is for. The last one is
    /// for all other names.
    pub(crate) rules: Vec<(String, String, u32)>,
    pub(crate) handovers: u32,
    pub(crate) locks: Vec<LockSetting>,
    pub(crate) clients: Vec<ClientSetting>,
    /// The longest time to live of sessions.
    pub(crate) ttl: Duration,
    /// How wrong the clocks of each machine are.
    pub(crate) drifts: Vec<Drift>,
    /// How long a message takes, at least and at most.
    pub(crate) delay: (u64, u64),
    /// How many of a thousand messages are lost, and sent again by the system some time later.
    pub(crate) lossy: u64,
    /// The faults in play, each with the mean time between two of them.
    pub(crate) faults: Vec<(Fault, u64)>,
    /// When the faults end.
    pub(crate) heals: u64,
    /// How one node stays away from then on. With a fixed list of members, it is drained before.
    pub(crate) outage: Option<Outage>,
    /// Whether the disk of a node is full while the node believes the claims of its clients.
    pub(crate) fills: bool,
    /// Whether clients may hold locks without end.
    pub(crate) endless: bool,
    /// Whether the process of a node is killed when its ledger cannot be synced, and machines crash
    /// soon after.
    pub(crate) ends_in_sync: bool,
}

impl Settings {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let agreed = random.percent(33).then(|| agreed(random));
        let nodes = nodes(random, agreed.as_ref());
        let alone = nodes == 1 && agreed.is_none();
        // Agreed members come and go, so the algorithm has to serve groups of every size.
        let smallest = if agreed.is_some() { 1 } else { nodes };
        let drawn = algorithm(random, smallest..=nodes);
        let outage = outage(random, nodes, agreed.is_some());
        let burns = agreed.is_none() && outage.is_some();
        // With others, all members have to run.
        let algorithm = if burns { "majority" } else { drawn };
        let permits = random.between(2, 3) as u32;
        let rules = rules(alone, permits, algorithm);
        let keeps = random.percent(40);
        let kinds = if burns { 1 } else { 6 };
        let locks = locks(random, if keeps { 8 } else { 4 }, kinds, permits);
        let mut ttl = Duration::from_millis(*random.pick(&[1000, 2000, 5000, 10_000]));
        let count = random.between(2, 4) as usize * nodes.min(2);
        // No client may count on a lock for longer than on the lease of its node.
        let lease = agreed.as_ref().map(|agreed| Duration::from_millis(agreed.lease_ms.into()));
        let longest = lease.map_or(ttl, |lease| ttl.min(lease * 7 / 10));
        let length = random.between(20, 90) * SECOND;
        let mut faults = faults(random, length, agreed.is_some());
        // A client that keeps locks relies on its clock more than others.
        if keeps && random.percent(50) && !plays(&faults, Fault::PauseClient) {
            faults.push((Fault::PauseClient, length / random.between(2, 12)));
        }
        // Only clients of other machines may claim what a damaged ledger has lost.
        let remote = plays(&faults, Fault::DamageDisk);
        // In a group with agreed members nobody would tell children that its membership is over.
        let children = agreed.is_none() && plays(&faults, Fault::KillClient);
        let mut client = |at: usize| {
            let local = random.percent(50) && !remote;
            client(random, at % nodes, nodes, (local, children), longest, lease.is_some())
        };
        let mut clients: Vec<_> = (0..count).map(&mut client).collect();
        let drifts = drifts(random, nodes + clients.len(), agreed.is_some());
        let slow = *random.pick(&[MS / 2, 2 * MS, 20 * MS, 100 * MS]);
        let delay = (slow / random.between(2, 10), slow);
        // By dice of their own, so that all other runs stay as they are.
        let mut dice = Random::new(random.clone().next());
        if nodes > 1 && dice.percent(15) {
            faults.push((Fault::TakeAddress, length / dice.between(2, 6)));
        }
        if agreed.is_some() {
            bind(&mut dice, &mut clients, &faults);
        }
        if keeps {
            keep(&mut dice, &mut clients, locks.len());
        }
        let fills = alone && !remote && dice.percent(20);
        if fills {
            ttl = Duration::from_secs(2);
            faults = fill(&mut dice, &mut clients, ttl, length);
        }
        // A damaged ledger may have lost a lock without end, and no client can claim it. A node
        // that is drained keeps it.
        let may_be_endless = !(fills || remote || burns);
        let endless = may_be_endless && hold_without_end(&mut dice, &mut clients, &mut faults);
        let ends_in_sync = endless && dice.percent(40);
        Self {
            nodes,
            agreed,
            shards: random.between(1, 2) as usize,
            keep_idle: random.between(0, 2) as usize,
            rules,
            handovers: random.between(1, 4) as u32,
            locks,
            clients,
            ttl,
            drifts,
            delay,
            lossy: *random.pick(&[0, 0, 2, 20]),
            faults,
            heals: length,
            outage,
            fills,
            endless,
            ends_in_sync,
        }
    }

    /// The time after which most things are over: the lease of members, or the longest time to live
    /// of sessions.
    pub(crate) fn deadline(&self) -> u64 {
        let lease = self.agreed.as_ref().map(|agreed| u64::from(agreed.lease_ms) * MS);
        lease.unwrap_or(self.ttl.as_nanos() as u64)
    }

    /// Whether the group has one member, and never another one.
    pub(crate) fn alone(&self) -> bool {
        self.nodes == 1 && self.agreed.is_none()
    }

    /// The rules for locks, with which every group begins.
    pub(crate) fn lock_rules(&self) -> LockRules {
        let (others, rules) = self.rules.split_last().expect("a rule for all other names");
        let rule = |(begin, algorithm, permits): &(String, String, u32)| {
            RuleConfig::new(format!("{begin}*"), algorithm, *permits)
        };
        LockRules { rules: rules.iter().map(rule).collect(), algorithm: others.1.clone() }
    }

    /// The rules of a view with these members.
    pub(crate) fn rules_for(&self, members: &[String]) -> RuleBook {
        let rules = self.lock_rules().arrange(members, self.handovers, None);
        rules.with_patience(self.patience())
    }

    /// For how long locks linger. The clients of a simulation are slower than those of a service.
    pub(crate) fn patience(&self) -> Patience {
        let linger = Duration::from_millis(12 * u64::from(self.handovers));
        Patience { linger, slice: Duration::from_secs(1), trust: 1 }
    }
}

/// Whether a run has this fault.
fn plays(faults: &[(Fault, u64)], fault: Fault) -> bool {
    faults.iter().any(|(known, _)| *known == fault)
}

/// An algorithm that serves groups of all these sizes.
fn algorithm(random: &mut Random, sizes: RangeInclusive<usize>) -> &'static str {
    let mut algorithms = served();
    algorithms.retain(|name| sizes.clone().all(|size| Rule::new(name, size, 1, 1).is_ok()));
    let any = |random: &mut Random| algorithms[random.below(algorithms.len() as u64) as usize];
    if random.percent(40) { "carvalho-roucairol" } else { any(random) }
}

/// The rules of the locks of a run.
fn rules(alone: bool, permits: u32, algorithm: &str) -> Vec<(String, String, u32)> {
    let mut rules = vec![("rw".to_owned(), "readers-writers".to_owned(), 1)];
    if alone {
        rules.extend((2..4).map(|k| (format!("%k/{k}/"), "raymond-k".to_owned(), k)));
    } else {
        rules.push(("slots".to_owned(), "raymond-k".to_owned(), permits));
    }
    rules.push((String::new(), algorithm.to_owned(), 1));
    rules
}

/// How a node stays away when the faults have ended, if one does.
fn outage(random: &mut Random, nodes: usize, agreed: bool) -> Option<Outage> {
    let kinds = [Outage::Burnt, Outage::Isolated, Outage::Suspended];
    match nodes {
        2.. if agreed => random.percent(50).then(|| *random.pick(&kinds)),
        3 => random.percent(10).then_some(Outage::Burnt),
        _ => None,
    }
}

/// The locks of a run. With one kind, all of them are exclusive.
fn locks(random: &mut Random, most: u64, kinds: u64, permits: u32) -> Vec<LockSetting> {
    let count = random.between(1, most);
    let lock = |number| {
        let (name, kind) = match random.below(kinds) {
            1 => (format!("rw{number}"), Kind::Shared),
            2 => (format!("slots{number}"), Kind::Permits(permits)),
            _ => (format!("lock{number}"), Kind::Exclusive),
        };
        LockSetting { name: Name::new(&name).expect("a short name"), kind }
    };
    (0..count).map(lock).collect()
}

/// Let sessions of a group with agreed members live with their processes. A client that is
/// suspended cannot notice that its node has lost its lease, and only the fence helps then. So this
/// is only for runs in which no client is suspended.
fn bind(dice: &mut Random, clients: &mut [ClientSetting], faults: &[(Fault, u64)]) {
    let suspends = |(fault, _): &(Fault, u64)| matches!(fault, Fault::PauseClient | Fault::Sleep);
    if faults.iter().any(suspends) {
        return;
    }
    let may = |it: &&mut ClientSetting| it.local && it.life == LifeSetting::Connection;
    for client in clients.iter_mut().filter(may) {
        client.ttl = if dice.percent(40) { UNLIMITED } else { client.ttl };
    }
}

/// Let clients keep their locks until somebody else wants them. Each client has a favourite lock,
/// another one than the others if there are enough, so that some locks are not wanted for a while.
fn keep(dice: &mut Random, clients: &mut [ClientSetting], locks: usize) {
    for (at, client) in clients.iter_mut().enumerate() {
        client.favourite = Some(at % locks);
    }
    let connected = |it: &&mut ClientSetting| {
        matches!(it.life, LifeSetting::Connection | LifeSetting::Inherited)
    };
    for client in clients.iter_mut().filter(connected) {
        client.keep = dice.percent(70);
        if client.keep && dice.percent(50) {
            client.thinks *= 5; // So that it is outside for a while.
        }
        if client.keep && client.ttl == UNLIMITED {
            client.ttl = Duration::from_millis(dice.magnitude(1000, 10_000));
        }
    }
}

/// The faults of a run in which a disk is full while its node believes the claims of clients. The
/// clients are on other machines, so that they outlive the crash of this one, and they are inside
/// for about as long as the node waits for them.
fn fill(
    dice: &mut Random,
    clients: &mut [ClientSetting],
    ttl: Duration,
    length: u64,
) -> Vec<(Fault, u64)> {
    for client in clients {
        (client.local, client.life, client.ttl) = (false, LifeSetting::Connection, ttl);
        client.holds = dice.between(2 * SECOND, 4 * SECOND);
    }
    let faults = [Fault::CrashMachine, Fault::KillNode, Fault::Break];
    faults.map(|fault| (fault, length / dice.between(4, 16))).to_vec()
}

/// In some runs, let clients over HTTP hold locks without end, and let nodes and machines crash,
/// disks fail and operators break locks more often. No node gets the address of another one: a
/// client that asks the wrong node would believe that its lock is lost.
fn hold_without_end(
    dice: &mut Random,
    clients: &mut [ClientSetting],
    faults: &mut Vec<(Fault, u64)>,
) -> bool {
    use Fault::{BreakLock, CrashMachine, FullDisk, KillClient, KillNode};
    if !dice.percent(15) {
        return false;
    }
    for client in clients {
        if dice.percent(60) {
            client.nodes.truncate(1);
            (client.life, client.keep, client.endless) = (LifeSetting::Http, false, true);
            client.ttl = client.ttl.min(Duration::from_secs(5));
        }
    }
    faults.retain(|(fault, _)| *fault != Fault::TakeAddress);
    for fault in [KillNode, CrashMachine, KillClient, BreakLock, FullDisk] {
        if dice.percent(50) && !plays(faults, fault) {
            faults.push((fault, dice.between(4 * SECOND, 16 * SECOND)));
        }
    }
    true
}

/// How wrong the clocks of each machine are.
fn drifts(random: &mut Random, machines: usize, agreed: bool) -> Vec<Drift> {
    let mut most: u64 = *random.pick(&[0, 100, 20_000]);
    if agreed {
        most = most.min(1000); // The keeper of a membership relies on that.
    }
    let slewed: u64 = *random.pick(&[0, 83_333]);
    let around = |random: &mut Random, most: u64| {
        random.between(0, 2 * most).cast_signed() - most.cast_signed()
    };
    let drift = |_| {
        let raw = around(random, most);
        // A time service that has much to correct slews as fast as it may.
        let slew = match random.below(4) {
            0 => slewed.cast_signed(),
            1 => -slewed.cast_signed(),
            _ => around(random, slewed),
        };
        Drift { raw, boot: raw + slew }
    };
    (0..machines).map(drift).collect()
}

/// The faults of a run whose faults end after this time. In half of the runs they are of one theme.
fn faults(random: &mut Random, length: u64, agreed: bool) -> Vec<(Fault, u64)> {
    let (many, kinds) = if agreed { (8, Fault::AGREED) } else { (5, Fault::FIXED) };
    let themes = if agreed { &Fault::THEMES[..] } else { &Fault::THEMES[..Fault::FIXED_THEMES] };
    let of = if random.percent(50) { *random.pick(themes) } else { &Fault::ALL[..kinds] };
    let mut faults: Vec<(Fault, u64)> = Vec::new();
    for _ in 0..random.between(0, many) {
        let fault = *random.pick(of);
        if faults.iter().all(|(known, _)| *known != fault) {
            faults.push((fault, length / random.between(2, 12)));
        }
    }
    faults
}

fn agreed(random: &mut Random) -> AgreedSetting {
    AgreedSetting {
        founders: *random.pick(&[1, 2, 3, 3, 3]),
        lease_ms: *random.pick(&[2000, 3000, 5000, 10_000, 10_000]),
        lost: *random.pick(&[0, 0, 20, 200]),
        slow: *random.pick(&[0, 10, 100, 400]),
    }
}

/// How many nodes there are.
fn nodes(random: &mut Random, agreed: Option<&AgreedSetting>) -> usize {
    match agreed {
        Some(agreed) => agreed.founders + usize::from(random.percent(40)),
        None if random.percent(35) => 1,
        None => 3,
    }
}

fn client(
    random: &mut Random,
    node: usize,
    group: usize,
    (local, children): (bool, bool),
    ttl: Duration,
    agreed: bool,
) -> ClientSetting {
    let life = match (local, random.below(10)) {
        (true, 0..3) if !agreed => LifeSetting::Process,
        (true, 3..5) => LifeSetting::Inherited,
        (true, 6..9) if children => LifeSetting::Inherited,
        (true, 5) | (false, 0..2) => LifeSetting::Http,
        (false, 2..4) => LifeSetting::Lease,
        _ => LifeSetting::Connection,
    };
    let most = ttl.as_millis() as u64;
    let own = Duration::from_millis(random.magnitude(1000, most));
    // In a group with agreed members it depends on the faults: see `bind`.
    let bound = match life {
        _ if agreed => false,
        LifeSetting::Connection => local && random.percent(40),
        LifeSetting::Inherited => random.percent(60),
        _ => false,
    };
    let movable = !local && life == LifeSetting::Connection && random.percent(40);
    let several = if movable { random.between(1, group as u64) as usize } else { 1 };
    ClientSetting {
        nodes: (0..several).map(|more| (node + more) % group).collect(),
        local,
        life,
        ttl: if bound { UNLIMITED } else { own },
        keep: false,
        endless: false,
        favourite: None,
        patience: Duration::from_millis(random.magnitude(500, 20_000)),
        thinks: random.magnitude(MS, 200 * MS),
        holds: random.magnitude(MS, 500 * MS),
    }
}
