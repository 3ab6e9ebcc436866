//! Clients of other machines: TLS, tokens and certificates, and connections that are cut.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use doorway_daemon::listen::{Doors, Proof, Protocols, SharedTls, accept_tcp};
use doorway_daemon::service::Service;
use doorway_daemon::settings::{Limits, Settings, default_limits};
use doorway_protocol::{
    Claim, ClientInfo, Code, Frames, Greeting, Hello, MAGIC, Mode, NamePattern, Opening, Reply,
    Request, VERSIONS, Wait, put,
};
use doorway_sessions::principal::{PatternRights, Principal, Right, Rights};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::runtime::Runtime;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
};

use super::client::{CONNECTION, ask, claim, name, resume};
use crate::common::settings::settings;
use crate::common::{self, PATIENCE, Place};
use crate::server;

struct Server {
    service: Service,
    runtime: Runtime,
    address: SocketAddr,
    trusted: Arc<ClientConfig>,
}

/// The client `ci` has the token `let-me-in` and may only acquire `ci/*`; the client `eye` may also
/// inspect them.
fn identify(proof: Proof<'_>) -> Option<Principal> {
    let (name, may) = match proof {
        Proof::Token("let-me-in") => ("client ci", vec![Right::Acquire]),
        Proof::Token("let-me-see") => ("client eye", vec![Right::Acquire, Right::Inspect]),
        _ => return None,
    };
    let rights = Rights(vec![PatternRights { pattern: NamePattern::new("ci/*"), may }]);
    Some(Principal { name: name.into(), uid: None, rights })
}

fn start() -> Server {
    start_with(&settings())
}

fn start_with(settings: &Settings) -> Server {
    let made = generate_simple_self_signed(["node.local.doorway".to_owned()]);
    let CertifiedKey { cert, signing_key } = made.expect("a certificate can be made");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![cert.der().clone()], key).expect("they fit");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a certificate");
    let trusted = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let doors = Doors {
        tls: Some(SharedTls::new(Arc::new(server))),
        identify: Some(Arc::new(identify)),
        ..Doors::default()
    };
    let runtime = Runtime::new().expect("a runtime can be made");
    let (service, address) = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let service = server::start(settings).await;
        tokio::spawn(accept_tcp(service.clone(), listener, doors, Protocols::Native));
        (service, address)
    });
    Server { service, runtime, address, trusted: Arc::new(trusted) }
}

struct Remote {
    stream: StreamOwned<ClientConnection, TcpStream>,
    frames: Frames,
}

impl Remote {
    fn connect(server: &Server) -> Self {
        let tcp = TcpStream::connect(server.address).expect("somebody listens");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        let node = ServerName::try_from("node.local.doorway").expect("a name");
        let tls = ClientConnection::new(Arc::clone(&server.trusted), node).expect("a client");
        Self { stream: StreamOwned::new(tls, tcp), frames: Frames::default() }
    }

    fn hello(&mut self, token: Option<&str>, opening: Opening) -> Greeting {
        let who = ClientInfo { label: "build".into(), ..ClientInfo::default() };
        let token = token.map(str::to_owned);
        let hello = Hello { versions: VERSIONS, who, token, opening };
        let mut bytes = MAGIC.to_vec();
        put(&hello, &mut bytes);
        self.stream.write_all(&bytes).expect("the connection is there");
        self.frame()
    }

    fn frame<T: serde::de::DeserializeOwned>(&mut self) -> T {
        loop {
            if let Some(value) = self.frames.take().expect("whole frames") {
                return value;
            }
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).expect("something comes");
            assert!(count > 0, "the connection has ended");
            self.frames.feed(&bytes[..count]);
        }
    }

    fn ask(&mut self, request: &Request) -> Reply {
        self.send(request);
        self.frame()
    }

    fn send(&mut self, request: &Request) {
        let mut bytes = Vec::new();
        put(request, &mut bytes);
        self.stream.write_all(&bytes).expect("the connection is there");
    }
}

#[test]
fn a_session_outlives_a_cut_connection_until_its_timeout_and_can_be_resumed() {
    let server = start();
    let token = Some("let-me-in");
    let mut client = Remote::connect(&server);
    let opening = Opening::New { ttl_ms: 2500, life: CONNECTION };
    let (session, secret) = client.hello(token, opening).unwrap().session.unwrap();
    let asked = client.ask(&Request::Acquire(1, ask("ci/a", Wait::No)));
    let Reply::Granted(1, fence) = asked else { panic!("not granted: {asked:?}") };
    drop(client);
    until(&server, "its connection has ended", |service| service.connections() == 0);
    assert_eq!(server.service.held(), 1, "the network may have cut it");
    let mut client = Remote::connect(&server);
    let (lock, mode, permits) = (name("ci/a"), Mode::Exclusive, None);
    let held = vec![Claim { lock, mode, permits, fence, request: 1 }];
    let opening = Opening::Resume {
        node: None,
        session,
        secret,
        ttl_ms: 2500,
        life: CONNECTION,
        held,
        waiting: Vec::new(),
        more: false,
    };
    // Measured from before the heartbeat, so that a pause after it does not count.
    let cut = Instant::now();
    let welcome = client.hello(token, opening).unwrap();
    assert_eq!((welcome.session, welcome.lost), (Some((session, secret)), Vec::new()));
    drop(client);
    until(&server, "it is lost", |service| service.held() == 0);
    assert!(cut.elapsed() > Duration::from_millis(2450), "too early");
    server.runtime.block_on(server.service.stop());
}

/// A session keeps its locks over a stop, and its client resumes it at the next process.
#[test]
fn a_cut_connection_keeps_its_locks_over_a_graceful_stop() {
    let (place, token) = (Place::new(), Some("let-me-in"));
    let mut settings = settings();
    settings.node.data = Some(place.path().to_owned());
    let server = start_with(&settings);
    let mut client = Remote::connect(&server);
    let opening = Opening::New { ttl_ms: 10_000, life: CONNECTION };
    let welcome = client.hello(token, opening).unwrap();
    let asked = client.ask(&Request::Acquire(1, ask("ci/a", Wait::No)));
    let Reply::Granted(1, fence) = asked else { panic!("not granted: {asked:?}") };
    drop(client);
    until(&server, "its connection has ended", |service| service.connections() == 0);
    server.runtime.block_on(server.service.stop());
    drop(server);
    let server = start_with(&settings);
    assert_eq!(server.service.status().reclaiming_ms, None, "all other locks are served at once");
    assert_eq!(server.service.held(), 1);
    let mut client = Remote::connect(&server);
    // A client cannot claim a lock that it may not acquire.
    let others = claim("deploy", fence);
    let opening = resume(&welcome, vec![claim("ci/a", fence), others.clone()]);
    assert_eq!(client.hello(token, opening).unwrap().lost, [others]);
    assert_eq!(server.service.held(), 1);
}

#[test]
fn clients_without_proof_or_rights_are_refused() {
    let server = start();
    for token in [None, Some("let-me-in!")] {
        let refused = Remote::connect(&server).hello(token, Opening::Visit).unwrap_err();
        assert_eq!(refused.code, Code::Forbidden, "{token:?}");
    }
    let mut client = Remote::connect(&server);
    let life = doorway_protocol::Life::Process { pid: std::process::id() };
    let opening = Opening::New { ttl_ms: 1000, life };
    let refused = client.hello(Some("let-me-in"), opening).unwrap_err();
    assert_eq!(refused.code, Code::Invalid, "a process of another machine");
    let mut client = Remote::connect(&server);
    let opening = Opening::New { ttl_ms: 60_000, life: CONNECTION };
    client.hello(Some("let-me-in"), opening).unwrap();
    let requests = [
        Request::Acquire(1, ask("deploy", Wait::No)),
        Request::Inspect(1, name("ci/a")),
        Request::Break(1, name("ci/a"), doorway_protocol::Fence::new(1, 1)),
        Request::AwaitFree(1, name("ci/a")),
    ];
    for request in requests {
        let Reply::Refused(1, refused) = client.ask(&request) else { panic!("{request:?}") };
        assert_eq!(refused.code, Code::Forbidden, "{request:?}");
        assert!(refused.text.starts_with("client ci may not "), "{refused}");
    }
    // Locks that the client may not inspect are not listed.
    client.ask(&Request::Acquire(2, ask("ci/a", Wait::No)));
    let list = Request::List { number: 3, prefix: String::new(), after: None };
    let Reply::Locks(3, locks) = client.ask(&list) else { panic!("no list") };
    assert_eq!(locks.locks, []);
}

#[test]
fn garbage_instead_of_a_handshake_does_not_affect_others() {
    let server = start();
    for _ in 0..100 {
        let mut tcp = TcpStream::connect(server.address).unwrap();
        let _ = tcp.write_all(b"GET / HTTP/1.1\r\n\r\n");
    }
    let mut client = Remote::connect(&server);
    client.hello(Some("let-me-in"), Opening::Visit).unwrap();
}

#[test]
fn http_at_the_port_for_sessions_is_told_where_it_is() {
    let server = start();
    let request = b"GET /v1/status HTTP/1.1\r\nhost: node\r\n\r\n";
    let mut text = String::new();
    let mut secure = Remote::connect(&server).stream;
    secure.write_all(request).unwrap();
    let _ = secure.read_to_string(&mut text); // The node may close TCP without closing TLS.
    assert!(text.starts_with("HTTP/1.1 421 "), "{text}");
    assert!(text.contains("this is the port for sessions of the node"), "{text}");
    assert!(text.contains("it has no port for HTTP (`listen` under [http])"), "{text}");
    text.clear();
    let mut plain = TcpStream::connect(server.address).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(request).unwrap();
    plain.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 400 ") && text.contains("use https://"), "{text}");
}

const NEW: Opening = Opening::New { ttl_ms: 60_000, life: CONNECTION };

fn limited(limits: Limits) -> Server {
    start_with(&Settings { limits, ..settings() })
}

fn until(server: &Server, what: &str, done: impl Fn(&Service) -> bool) {
    common::until(what, || done(&server.service));
}

#[test]
fn one_client_cannot_use_up_all_sessions_or_connections() {
    let server = limited(Limits { sessions: 4, ..default_limits() });
    let session = |token| {
        let mut client = Remote::connect(&server);
        client.hello(Some(token), NEW).map(|_| client)
    };
    let _kept = [session("let-me-in").unwrap(), session("let-me-in").unwrap()];
    let refused = session("let-me-in").err().expect("half of all is the most");
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.text.contains("`limits.sessions` = 4"), "{refused}");
    session("let-me-see").unwrap();
    let server = limited(Limits { connections: 4, ..default_limits() });
    let visit = |token| {
        let mut client = Remote::connect(&server);
        client.hello(Some(token), Opening::Visit).map(|_| client)
    };
    let kept = [visit("let-me-in").unwrap(), visit("let-me-in").unwrap()];
    let refused = visit("let-me-in").err().expect("half of all is the most");
    assert!(refused.text.contains("`limits.connections` = 4"), "{refused}");
    visit("let-me-see").unwrap();
    drop(kept);
    until(&server, "all are gone", |service| service.connections() == 0);
    visit("let-me-in").unwrap();
}

#[test]
fn connections_without_a_handshake_are_counted_and_limited() {
    let server = limited(Limits { connections: 6, ..default_limits() });
    let connect = || TcpStream::connect(server.address).expect("somebody listens");
    let silent: Vec<_> = (0..3).map(|_| connect()).collect();
    until(&server, "they are counted", |service| service.connections() == 3);
    // A client that sent nothing cannot get a refusal, so it is enough that the connection ends.
    let refused = Remote::connect(&server).hello(Some("let-me-in"), Opening::Visit).unwrap_err();
    assert_eq!(refused.code, Code::Busy);
    drop(silent);
    until(&server, "they are gone", |service| service.connections() == 0);
    Remote::connect(&server).hello(Some("let-me-in"), Opening::Visit).unwrap();
}

#[test]
fn one_client_gets_half_of_a_queue_and_a_limited_number_of_watches() {
    let server = limited(Limits { queue: 4, ..default_limits() });
    let (mut holder, mut ci) = (Remote::connect(&server), Remote::connect(&server));
    holder.hello(Some("let-me-see"), NEW).unwrap();
    ci.hello(Some("let-me-in"), NEW).unwrap();
    let asked = holder.ask(&Request::Acquire(1, ask("ci/a", Wait::No)));
    assert!(matches!(asked, Reply::Granted(..)), "{asked:?}");
    ci.send(&Request::Acquire(1, ask("ci/a", Wait::Forever)));
    ci.send(&Request::Acquire(2, ask("ci/a", Wait::Forever)));
    let Reply::Refused(3, refused) = ci.ask(&Request::Acquire(3, ask("ci/a", Wait::Forever)))
    else {
        panic!("not refused")
    };
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.text.contains("requests for `ci/a`"), "{refused}");
    assert!(refused.text.contains("`limits.queue` = 4"), "{refused}");
    // Another lock has its own queue, and another client its own half of the limit.
    let asked = ci.ask(&Request::Acquire(4, ask("ci/b", Wait::Forever)));
    assert!(matches!(asked, Reply::Granted(4, _)), "{asked:?}");
    let mut eye = Remote::connect(&server);
    eye.hello(Some("let-me-see"), NEW).unwrap();
    eye.send(&Request::Acquire(1, ask("ci/a", Wait::Forever)));
    until(&server, "it waits", |service| service.status().waiting == 3);
    (0..200).for_each(|number| holder.send(&Request::AwaitFree(1000 + number, name("ci/a"))));
    (0..56).for_each(|number| eye.send(&Request::AwaitFree(1000 + number, name("ci/a"))));
    let status = eye.ask(&Request::Status(7));
    assert!(matches!(status, Reply::Status(7, _)), "{status:?}");
    let status = holder.ask(&Request::Status(7));
    assert!(matches!(status, Reply::Status(7, _)), "{status:?}");
    let refused = eye.ask(&Request::AwaitFree(2000, name("ci/a")));
    let Reply::Refused(2000, refused) = refused else { panic!("{refused:?}") };
    assert!(refused.text.contains("256"), "{refused}");
}
