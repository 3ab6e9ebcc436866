//! Peers and unknown callers that violate the protocol.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::link::{Decoder, Frame, Hello, Incarnation};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::support::{Authority, GROUP, Log, Node, Recorder, listen, stop, until};

/// Connect to node 2 as node 1 would, with its certificate. The test then sends what it likes.
async fn connect(authority: &Authority, address: &str) -> TlsStream<TcpStream> {
    connect_as(authority, GROUP, address).await
}

async fn connect_as(authority: &Authority, group: &str, address: &str) -> TlsStream<TcpStream> {
    let (chain, key) = authority.sign("n1", group);
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("a connection"))
        .expect("a connection");
    let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).expect("a connection")];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a connection");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("a connection")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .expect("a connection");
    let name = ServerName::try_from(format!("n2.{GROUP}.doorway")).expect("a connection");
    let stream = TcpStream::connect(address).await.expect("a connection");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a connection")
}

fn bytes(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

/// Read everything until the other side closes the connection.
async fn rest(mut stream: TlsStream<TcpStream>) -> Vec<u8> {
    let mut rest = Vec::new();
    // The other side may close the connection in any way.
    let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest))
        .await
        .expect("the connection is ended");
    rest
}

/// Nodes 2 and 3 run; node 1 is played by the test.
async fn two_of_three() -> (Authority, Vec<Node>, Vec<String>) {
    let authority = Authority::new();
    let ((_, a1), (l2, a2), (l3, a3)) = (listen().await, listen().await, listen().await);
    let addresses = vec![a1, a2, a3];
    let start = |me: u32, name: &str, listener: TcpListener| {
        let handler = Recorder::new(name, 100 + u64::from(me));
        Node::start(me, authority.identity(name), handler, listener, &addresses)
    };
    let nodes = vec![start(1, "n2", l2), start(2, "n3", l3)];
    until("they have met", || nodes.iter().all(|node| node.handler.ups() == 1)).await;
    (authority, nodes, addresses)
}

/// What node 1 sends after a good handshake, and what the node logs about it.
#[tokio::test]
async fn a_peer_that_talks_nonsense_is_dropped_and_the_others_are_not() {
    let (authority, nodes, addresses) = two_of_three().await;
    let data = |number, message: &[u8]| bytes(&Frame::Data { number, received: 0, message });
    let good = |number: u64| data(number, &[2, 1, number as u8]);
    let mut truncated = good(2);
    truncated.pop();
    let nonsense: Vec<(Vec<u8>, &str)> = vec![
        (vec![0xff; 100], "1048576 are allowed"),
        (vec![0; 4], "length 0"),
        (vec![1, 0, 0, 0, 9], "unknown kind 9"),
        (vec![1, 0, 0, 0, 2], "ack frame that cannot be decoded"),
        (data(2, &[99]), "cannot be decoded"),
        (good(5), "missing"),
        (bytes(&Frame::Ack(7)), "only 0 were sent"),
        (bytes(&Frame::Hello(Hello::default())), "at the wrong time"),
        (bytes(&Frame::Bye("so long")), "so long"),
        (truncated, "closed"),
    ];
    for (at, (nonsense, why)) in nonsense.iter().enumerate() {
        let mut stream = connect(&authority, &addresses[1]).await;
        let incarnation = Incarnation(1000 + at as u64);
        let hello = Hello { incarnation, ..Recorder::new("n1", 0).hello };
        // The first message is good, and must arrive whatever follows.
        let said = [bytes(&Frame::Hello(hello)), good(1), nonsense.clone()].concat();
        stream.write_all(&said).await.unwrap();
        stream.flush().await.unwrap();
        if *why == "closed" {
            stream.shutdown().await.unwrap();
        }
        rest(stream).await;
        until("it is noticed", || nodes[0].handler.downs.lock().len() == at + 1).await;
        let said = nodes[0].handler.downs.lock()[at].clone();
        assert!(said.contains(why), "{said} instead of {why}");
        assert_eq!(nodes[0].handler.from(0), vec![1; at + 1]);
    }
    nodes[0].send(1, 7);
    until("the others talk", || nodes[1].handler.from(1) == [7]).await;
    assert_eq!(nodes[0].handler.ups(), nonsense.len() + 1);
    assert_eq!(nodes[1].handler.ups(), 1);
    stop(nodes).await;
}

#[tokio::test]
async fn a_caller_without_a_valid_hello_is_dropped() {
    let (authority, nodes, addresses) = two_of_three().await;
    let mut long = Recorder::new("n1", 0).hello;
    long.epochs = vec![u64::MAX; 5000];
    for nonsense in [
        vec![0xff; 100],
        bytes(&Frame::Ack(0)),
        vec![5, 0, 0, 0, 0, 1, 1, 200, 200],
        bytes(&Frame::Hello(long)),
    ] {
        let mut stream = connect(&authority, &addresses[1]).await;
        stream.write_all(&nonsense).await.unwrap();
        stream.flush().await.unwrap();
        rest(stream).await;
    }
    // Without TLS at all.
    let mut stream = TcpStream::connect(&addresses[1]).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    assert_eq!(nodes[0].handler.ups(), 1);
    nodes[0].send(1, 7);
    until("the others talk", || nodes[1].handler.from(1) == [7]).await;
    stop(nodes).await;
}

/// A port scanner sends something else each time.
#[tokio::test]
async fn garbage_from_one_address_is_logged_once_a_minute() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let authority = Authority::new();
    let (listener, address) = listen().await;
    let addresses = [address];
    let handler = Recorder::new("n1", 1);
    let node = Node::start(0, authority.identity("n1"), handler, listener, &addresses);
    let garbage = async |bytes: &[u8]| {
        let mut stream = TcpStream::connect(&addresses[0]).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        // The node may end the connection in any way. It has logged that by then.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    };
    // Three alerts and two records: each is refused for a reason of its own.
    let scan = async || {
        for alert in [40, 48, 80] {
            garbage(&[21, 3, 3, 0, 2, 2, alert]).await;
        }
        garbage(b"GET / HTTP/1.1\r\n\r\n").await;
        garbage(&[22, 3, 1, 0xff, 0xff, 1]).await;
    };
    scan().await;
    assert_eq!(log.count(&["from=127.0.0.1"]), 1, "{:#?}", log.lines());
    scan().await;
    assert_eq!(log.count(&["from=127.0.0.1"]), 1, "{:#?}", log.lines());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    scan().await;
    assert_eq!(log.count(&["from=127.0.0.1"]), 2, "{:#?}", log.lines());
    stop(vec![node]).await;
}

#[tokio::test]
async fn a_member_of_another_group_is_told_so() {
    let (authority, nodes, addresses) = two_of_three().await;
    for (certified, claimed, why) in [
        ("bank", "bank", "wrong group"),
        ("bank", GROUP, "wrong name"),
        (GROUP, "bank", "wrong name"),
    ] {
        let mut stream = connect_as(&authority, certified, &addresses[1]).await;
        let mut hello = Recorder::new("n1", 1).hello;
        hello.group = claimed.to_owned();
        stream.write_all(&bytes(&Frame::Hello(hello))).await.unwrap();
        stream.flush().await.unwrap();
        let mut decoder = Decoder::default();
        decoder.room().extend_from_slice(&rest(stream).await);
        let Ok(Some(Frame::Bye(said))) = decoder.frame() else {
            panic!("the refusal gives no reason")
        };
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(nodes[0].handler.ups(), 1);
    stop(nodes).await;
}

#[tokio::test]
async fn a_silent_peer_is_dropped() {
    let (authority, nodes, addresses) = two_of_three().await;
    // More callers that send nothing than may be in a handshake at a time.
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(TcpStream::connect(&addresses[1]).await.unwrap());
    }
    let mut stream = connect(&authority, &addresses[1]).await;
    let hello = Recorder::new("n1", 0).hello;
    let said = [bytes(&Frame::Hello(hello)), bytes(&Frame::Ack(0))].concat();
    stream.write_all(&said).await.unwrap();
    stream.flush().await.unwrap();
    let heard = rest(stream).await;
    assert!(nodes[0].handler.downs.lock().iter().any(|why| why.contains("nothing was received")));
    let mut decoder = Decoder::default();
    decoder.room().extend_from_slice(&heard);
    assert!(matches!(decoder.frame(), Ok(Some(Frame::Hello(_)))));
    let mut signs = 0;
    while let Ok(Some(frame)) = decoder.frame() {
        assert_eq!(frame, Frame::Ack(0));
        signs += 1;
    }
    assert!(signs >= 3, "only {signs} signs of life");
    assert_eq!(nodes[1].handler.downs.lock().len(), 0);
    drop(crowd);
    stop(nodes).await;
}

#[tokio::test]
async fn a_listener_that_says_nothing_is_given_up_and_tried_again() {
    let authority = Authority::new();
    let ((l1, a1), (mute, a2), (l3, a3)) = (listen().await, listen().await, listen().await);
    let addresses = [a1, a2, a3];
    let start = |me: u32, name: &str, listener: TcpListener| {
        let handler = Recorder::new(name, 100 + u64::from(me));
        Node::start(me, authority.identity(name), handler, listener, &addresses)
    };
    let nodes = vec![start(0, "n1", l1), start(2, "n3", l3)];
    let first = mute.accept().await.unwrap();
    let second = mute.accept().await.unwrap();
    until("the third is up", || nodes[0].handler.ups() == 1 && nodes[1].handler.ups() == 1).await;
    nodes[0].send(1, 7);
    until("they talk", || nodes[1].handler.from(0) == [7]).await;
    drop((first, second));
    stop(nodes).await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_delays_no_other_peer() {
    let (authority, nodes, addresses) = two_of_three().await;
    let mut stream = connect(&authority, &addresses[1]).await;
    let hello = Recorder::new("n1", 0).hello;
    let said = [bytes(&Frame::Hello(hello)), bytes(&Frame::Ack(0))].concat();
    stream.write_all(&said).await.unwrap();
    until("it is up", || nodes[0].handler.ups() == 2).await;
    // More than all buffers on the way can hold.
    for number in 0..600_000 {
        nodes[0].send(0, number);
    }
    nodes[0].send(1, 7);
    until("the others talk", || nodes[1].handler.from(1) == [7]).await;
    assert!(nodes[0].peers[0].report().unacknowledged > 500_000);
    drop(stream);
    stop(nodes).await;
}

/// Callers that connect and say nothing, more of them than may be in their handshake at a time, do
/// not keep a member away.
#[tokio::test]
async fn silent_callers_do_not_keep_a_member_away() {
    let (authority, mut nodes, addresses) = two_of_three().await;
    let address = addresses[1].clone();
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(&address).await.expect("a connection"));
    }
    // More callers come than can be told that their handshake took too long.
    let silent = tokio::spawn(async move {
        loop {
            silent.push(TcpStream::connect(&address).await.expect("a connection"));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let listener = TcpListener::bind(&addresses[0]).await.expect("the address of the first node");
    let handler = Recorder::new("n1", 100);
    let node = Node::start(0, authority.identity("n1"), handler, listener, &addresses);
    until("the member has met the others", || node.handler.ups() == 2).await;
    silent.abort();
    nodes.push(node);
    stop(nodes).await;
}
