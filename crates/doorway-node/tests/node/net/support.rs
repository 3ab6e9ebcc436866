//! Nodes that send only numbers, certificates for them, and a log of their warnings.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorway_node::link::{Hello, Incarnation};
use doorway_node::messages::Message;
use doorway_node::net::{
    Backlog, Identity, LinkHandler, Mesh, Network as _, Peer, PeerId, Tcp, Timing,
};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::field::{Field, Visit};
use tracing::span;

pub(crate) const GROUP: &str = "shop";

/// An authority that signs certificates.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// The certificate and the key of a node, as PEM.
    pub(crate) fn sign(&self, node: &str, group: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![format!("{node}.{group}.doorway")]);
        let signed = params.expect("a name").signed_by(&key, &self.issuer).expect("a certificate");
        (signed.pem(), key.serialize_pem())
    }

    pub(crate) fn identity(&self, node: &str) -> Identity {
        let (chain, key) = self.sign(node, GROUP);
        identity(&self.pem, &chain, &key)
    }
}

pub(crate) fn identity(authority: &str, chain: &str, key: &str) -> Identity {
    Identity::from_pem(authority.as_bytes(), chain.as_bytes(), key.as_bytes()).expect("an identity")
}

/// Short timeouts, so that tests are fast.
pub(crate) fn timing() -> Timing {
    Timing {
        heartbeat: Duration::from_millis(50),
        silence: Duration::from_millis(400),
        handshake: Duration::from_secs(1),
        pause: Duration::from_millis(2),
        longest_pause: Duration::from_millis(4),
    }
}

/// Records what its links report.
pub(crate) struct Recorder {
    pub(crate) hello: Hello,
    pub(crate) got: Mutex<Vec<(PeerId, u64)>>,
    pub(crate) ups: AtomicUsize,
    pub(crate) downs: Mutex<Vec<String>>,
}

impl Recorder {
    pub(crate) fn new(node: &str, incarnation: u64) -> Self {
        let incarnation = Incarnation(incarnation);
        let (group, node) = (GROUP.to_owned(), node.to_owned());
        let hello = Hello { group, node, incarnation, config: 5, ..Hello::default() };
        Self { hello, got: Mutex::default(), ups: AtomicUsize::new(0), downs: Mutex::default() }
    }

    pub(crate) fn ups(&self) -> usize {
        self.ups.load(Ordering::SeqCst)
    }

    /// The numbers that have arrived from a node.
    pub(crate) fn from(&self, node: u32) -> Vec<u64> {
        let got = self.got.lock();
        got.iter()
            .filter(|(from, _)| from.0 == u64::from(node))
            .map(|(_, number)| *number)
            .collect()
    }
}

impl LinkHandler for Recorder {
    fn hello(&self) -> Hello {
        self.hello.clone()
    }

    fn admit(&self, _peer: PeerId, hello: &Hello) -> Result<(), String> {
        if hello.epochs == [666] { Err("its epoch was overtaken".to_owned()) } else { Ok(()) }
    }

    fn up(&self, _peer: PeerId, _hello: &Hello) {
        self.ups.fetch_add(1, Ordering::SeqCst);
    }

    fn deliver(&self, from: PeerId, message: Message) {
        let Message::Epochs(numbers) = message else { panic!("only numbers are sent here") };
        self.got.lock().push((from, numbers[0]));
    }

    fn down(&self, _peer: PeerId, _closed: bool, why: &str) {
        self.downs.lock().push(why.to_owned());
    }
}

/// A running node.
pub(crate) struct Node {
    pub(crate) handler: Arc<Recorder>,
    pub(crate) peers: Vec<Arc<Peer>>,
    pub(crate) task: JoinHandle<()>,
}

impl Node {
    /// Start node `me` of those at the addresses. The first one is called `n1`.
    pub(crate) fn start(
        me: u32,
        identity: Identity,
        handler: Recorder,
        listener: TcpListener,
        addresses: &[String],
    ) -> Self {
        let others = (0_u32..).zip(addresses).filter(|(id, _)| *id != me);
        let peer = |(id, address): (u32, &String)| {
            let (number, name) = (PeerId(id.into()), format!("n{}", id + 1));
            Arc::new(Peer::new(number, name, address.clone(), id > me, Backlog::new(1000)))
        };
        let peers: Vec<_> = others.map(peer).collect();
        let (handler, seed) = (Arc::new(handler), u64::from(me));
        let (all, node) = (watch::Sender::new(peers.clone()), Arc::clone(&handler));
        let mesh = Mesh::new(Tcp, identity, all.subscribe(), node, timing(), seed);
        Self {
            handler,
            peers,
            task: tokio::spawn(Arc::new(mesh).run(listener, std::future::pending())),
        }
    }

    /// Send a number. Odd numbers are written by the task of the link, even ones by this thread.
    pub(crate) fn send(&self, peer: usize, number: u64) {
        let (peer, message) = (&self.peers[peer], Message::Epochs(vec![number]));
        if number % 2 == 1 {
            peer.send(&message).expect("a short message");
        } else {
            peer.queue(&message).expect("a short message");
            peer.flush();
        }
    }
}

pub(crate) async fn listen() -> (TcpListener, String) {
    let listener = Tcp.bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    (listener, address)
}

/// Start a group of nodes.
pub(crate) async fn group(size: u32) -> (Authority, Vec<Node>, Vec<String>) {
    let authority = Authority::new();
    let mut listeners = Vec::new();
    for _ in 0..size {
        listeners.push(listen().await);
    }
    let addresses: Vec<_> = listeners.iter().map(|(_, address)| address.clone()).collect();
    let node = |(me, (listener, _)): (u32, (TcpListener, String))| {
        let name = format!("n{}", me + 1);
        let handler = Recorder::new(&name, 100 + u64::from(me));
        Node::start(me, authority.identity(&name), handler, listener, &addresses)
    };
    let nodes = (0..).zip(listeners).map(node).collect();
    (authority, nodes, addresses)
}

/// Wait until a condition holds, with a timeout.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("timed out waiting until {what}");
}

/// Stop all nodes. No task may be left afterwards.
pub(crate) async fn stop(nodes: Vec<Node>) {
    for node in nodes {
        node.task.abort();
        assert!(node.task.await.is_err_and(|end| end.is_cancelled()), "a node that panicked");
    }
    let metrics = tokio::runtime::Handle::current().metrics();
    until("no task is left", || metrics.num_alive_tasks() == 0).await;
}

/// Keeps the warnings that are logged on this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    /// How many lines contain all of these words?
    pub(crate) fn count(&self, words: &[&str]) -> usize {
        let has_all = |line: &&String| words.iter().all(|word| line.contains(word));
        self.0.lock().iter().filter(has_all).count()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
