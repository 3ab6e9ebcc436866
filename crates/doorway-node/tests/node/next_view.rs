//! A node whose only peer does what no peer does by itself: its clock runs far ahead, it is silent,
//! or it sends too much too early. The node gets to its next view and goes on.

use std::sync::Arc;
use std::time::Duration;

use doorway_core::{Mode, NodeId};
use doorway_node::link::{Hello, Incarnation};
use doorway_node::locks::{LockRequest, Rule, RuleBook, Seating, Shard, ShardEffects};
use doorway_node::messages::{AlgorithmMessage, Message};
use doorway_node::net::{
    Backlog, Identity, LinkHandler, Mesh, Network as _, Peer, PeerId, Tcp, Timing,
};
use doorway_node::views::{LearnOutcome, ViewError, Views};
use doorway_node::{Config, Fence, Name, Node};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::common::group;

/// The second node of two, made of the parts of a node and controlled by the test.
struct Puppet {
    hello: Hello,
    peer: Arc<Peer>,
    views: Mutex<Views>,
    shard: Mutex<Shard>,
    seating: Arc<Seating>,
    /// The clock that it sends in its first view.
    clock: u64,
    /// Does it not flush?
    silent: Mutex<bool>,
}

impl Puppet {
    async fn start(config: &Config, clock: u64, silent: bool) -> Arc<Self> {
        let [first, second] = &config.members[..] else { panic!("a group of two") };
        let rule = Rule::new(&config.algorithm, 2, 1, 0).expect("a rule");
        let members = vec![first.name.clone(), second.name.clone()];
        let seating = Arc::new(Seating { members, me: NodeId(1), rules: RuleBook::of_all(rule) });
        let hello = Hello {
            group: config.group.clone(),
            node: second.name.clone(),
            config: digest(config),
            incarnation: Incarnation(7),
            ..Hello::default()
        };
        let peer = Peer::new(
            PeerId(0),
            first.name.clone(),
            first.address.clone(),
            false,
            Backlog::new(1000),
        );
        let puppet = Arc::new(Self {
            hello,
            peer: Arc::new(peer),
            views: Mutex::new(Views::new(NodeId(1), 2, 1)),
            shard: Mutex::new(Shard::new(Arc::clone(&seating), 100)),
            seating,
            clock,
            silent: Mutex::new(silent),
        });
        let tls = config.tls.as_ref().expect("certificates");
        let identity = Identity::from_pem(&tls.ca, &tls.certificate, &tls.key).expect("good ones");
        let peers = watch::Sender::new(vec![Arc::clone(&puppet.peer)]);
        let (peers, upper) = (peers.subscribe(), Arc::clone(&puppet));
        let mesh = Mesh::new(Tcp, identity, peers, upper, Timing::default(), 0);
        let listener = Tcp.bind(&second.address).await.expect("a free port");
        tokio::spawn(Arc::new(mesh).run(listener, std::future::pending()));
        puppet
    }

    fn send(&self, message: &Message) {
        self.peer.send(message).expect("a message that is not too long");
    }

    /// Do something with its locks.
    fn act<T>(&self, act: impl FnOnce(&mut Shard, &mut ShardEffects) -> T) -> T {
        let mut out = ShardEffects::default();
        let result = act(&mut self.shard.lock(), &mut out);
        for (_, mut step) in out.messages {
            if step.view == 2 {
                step.clock = step.clock.max(self.clock);
            }
            self.send(&Message::Algorithm(step));
        }
        result
    }

    /// Learn epochs, and take every step towards the next view, unless it is silent.
    fn hear(&self, hear: impl FnOnce(&mut Views) -> Result<LearnOutcome, ViewError>) {
        let mut views = self.views.lock();
        hear(&mut views).expect("what can be");
        if *self.silent.lock() {
            return;
        }
        if let Some(view) = views.pending() {
            let held = self.shard.lock().stop(view.number());
            for flush in views.stopped(&view, held) {
                self.send(&Message::Flush(flush));
            }
        }
        if let Some(started) = views.ready() {
            let of = |(node, held): (usize, _)| (NodeId::at(node), held);
            let held = started.held.into_iter().enumerate();
            let held = held.flat_map(|(node, held)| held.into_iter().map(move |held| (node, held)));
            let (view, held) = (started.view.number(), held.map(of).collect());
            self.act(|shard, out| shard.start(view, &self.seating, held, Duration::ZERO, out));
        }
    }

    /// End its silence.
    fn speak(&self) {
        *self.silent.lock() = false;
        self.hear(|_| Ok(LearnOutcome::Nothing));
    }

    /// Has the other node flushed?
    fn has_heard(&self) -> bool {
        self.views.lock().missing().is_empty()
    }

    /// Could a client enter at once?
    fn may_enter(&self, name: &Name) -> bool {
        let ask =
            LockRequest { mode: Mode::Exclusive, session: 0, reserve: 0, now: Duration::ZERO };
        self.act(|shard, out| {
            let slot = shard.open(name);
            let entered = shard.try_acquire(slot, ask, out).expect("a lock that is not broken");
            entered.inspect(|(client, _)| shard.leave(*client, Duration::ZERO, out)).is_some()
        })
    }
}

impl LinkHandler for Puppet {
    fn hello(&self) -> Hello {
        Hello { epochs: self.views.lock().epochs().to_vec(), ..self.hello.clone() }
    }

    fn admit(&self, _peer: PeerId, _hello: &Hello) -> Result<(), String> {
        Ok(())
    }

    fn up(&self, _peer: PeerId, hello: &Hello) {
        self.hear(|views| views.learn(&hello.epochs));
    }

    fn deliver(&self, from: PeerId, message: Message) {
        let from = NodeId::at(from.0 as usize);
        match message {
            Message::Algorithm(step) => {
                self.act(|shard, out| shard.receive(from, &step, Duration::ZERO, out));
            }
            Message::Flush(flush) => self.hear(|views| views.flush(from, flush)),
            Message::Epochs(epochs) => self.hear(|views| views.learn(&epochs)),
            Message::Ask(..) | Message::Tell(..) | Message::Record(_) => {}
        }
    }

    fn down(&self, _peer: PeerId, _closed: bool, _why: &str) {}
}

/// The hash of the configuration, as the protocol defines it.
fn digest(config: &Config) -> u64 {
    let members = config.members.iter().map(|member| &member.name);
    let texts = [&config.group, &config.algorithm].into_iter().chain(members);
    let bytes = texts.flat_map(|text| text.bytes().chain([0xff]));
    bytes.chain(*b"rules\xff").fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("timed out waiting until {what}");
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_clock_that_has_run_far_leads_to_the_next_view_and_holders_stay() {
    let (scratch, configs) = group(2, &[]);
    let puppet = Puppet::start(&configs[1], Fence::CLOCK_LIMIT, false).await;
    let node = Node::start(configs[0].clone()).await.unwrap();
    let guard = node.lock("orders").within(LONG).await.unwrap();
    assert_eq!(guard.fence(), Fence::new(2, Fence::CLOCK_LIMIT + 1));
    until("the next view runs", || node.counters().view == Some(3)).await;
    assert!(!guard.is_lost());
    let epoch = std::fs::read_to_string(scratch.path().join("n1/epoch")).unwrap();
    assert_eq!(epoch, "epoch 2\n", "it was raised durably");
    let other = node.lock("stock").within(LONG).await.unwrap();
    assert_eq!(other.fence(), Fence::new(3, 1), "the clock begins anew");
    let orders = Name::new("orders").unwrap();
    assert!(!puppet.may_enter(&orders), "the other node knows who is inside");
    let before = guard.fence();
    drop(guard);
    let guard = node.lock("orders").within(LONG).await.unwrap();
    assert!(guard.fence() > before);
    assert_eq!(node.counters().view, Some(3), "it took one view, and no more");
}

#[tokio::test]
async fn a_member_that_is_there_and_does_not_flush_is_named() {
    let (_scratch, configs) = group(2, &[]);
    let puppet = Puppet::start(&configs[1], 0, true).await;
    let node = Node::start(configs[0].clone()).await.unwrap();
    until("it has stopped for the first view", || puppet.has_heard()).await;
    let orders = node.open("orders").unwrap();
    let why = orders.why().await;
    assert_eq!((why.view, why.away.len()), (None, 0));
    assert_eq!((why.awaited, why.silent), (vec!["n2".to_owned()], vec!["n2".to_owned()]));
    puppet.speak();
    drop(orders.lock().within(LONG).await.unwrap());
    let why = orders.why().await;
    assert_eq!((why.view, why.awaited.len()), (Some(2), 0));
}

#[tokio::test]
async fn a_node_that_cannot_keep_what_comes_early_goes_on_in_the_view_after() {
    let (_scratch, configs) = group(2, &[]);
    let puppet = Puppet::start(&configs[1], 0, true).await;
    let node = Node::start(configs[0].clone()).await.unwrap();
    until("it has stopped for the first view", || puppet.has_heard()).await;
    assert_eq!(node.counters().view, None);
    let lock = Name::new("orders").unwrap();
    let step = AlgorithmMessage { view: 2, clock: 0, lock, payload: vec![0; 1_000_000] };
    for _ in 0..6 {
        puppet.send(&Message::Algorithm(step.clone()));
    }
    puppet.speak();
    until("a view after the first runs", || node.counters().view == Some(3)).await;
    let guard = node.lock("orders").within(LONG).await.unwrap();
    assert_eq!(guard.fence().view(), 3);
}
