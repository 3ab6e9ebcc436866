//! Servers that are not etcd, or not any more: the store says what is wrong, and goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorway_node::members::{Record, ViewStore as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};

use super::world::{Group, begin, join};
use crate::{EtcdAccess, EtcdStore, FoundError, GroupStore as _};

/// What a server answers to every request, after which it closes the connection or goes silent.
#[derive(Clone)]
struct Answer {
    bytes: Vec<u8>,
    /// Send the last of the bytes again and again.
    endless: bool,
    closes: bool,
}

fn http(status: &str, body: &str) -> Answer {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
    Answer { bytes: text.into_bytes(), endless: false, closes: false }
}

/// A server. Returns its address, and how many bytes it has sent.
async fn server(answer: Answer) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answer, count) = (answer.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let mut request = vec![0; 1 << 16];
                while stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                    if stream.write_all(&answer.bytes).await.is_err() {
                        return;
                    }
                    if answer.endless {
                        let part = vec![b'x'; 1 << 16];
                        while stream.write_all(&part).await.is_ok() {
                            count.fetch_add(part.len(), Ordering::Relaxed);
                        }
                        return;
                    }
                    if answer.closes {
                        return;
                    }
                }
            });
        }
    });
    (address, sent)
}

/// A store with the shortest lease, whose etcd has these addresses.
async fn store(addresses: &[&str]) -> Arc<EtcdStore> {
    let mut world: Group<EtcdStore> = Group::new(1);
    let mut options = world.options("a");
    options.lease_ms = 2_000;
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let access = EtcdAccess { addresses, certificates: None, login: None };
    EtcdStore::open(options, access).await.unwrap()
}

/// What the store says about its etcd, once it has tried for long enough.
async fn trouble(store: &EtcdStore) -> String {
    let begin = Instant::now();
    loop {
        let health = store.health();
        if let Some((_, why)) = health.service.unwrap().unreachable {
            return why;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "no trouble is told");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_etcd_is_told_with_words() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let range = r#"{"header":{"cluster_id":"1","revision":"1"}"#;
    let cut = Answer { closes: true, ..http("200 OK", "{\"header\":") };
    let cut = Answer { bytes: cut.bytes[..cut.bytes.len() - 4].to_vec(), ..cut };
    let plain = |text: &str| Answer { bytes: text.into(), endless: false, closes: true };
    let servers = [
        (http("200 OK", "<html>hello</html>"), "not an answer of etcd"),
        (http("200 OK", "{}"), "not an answer of etcd"),
        (http("200 OK", range), "not an answer of etcd"),
        (http("200 OK", &"[".repeat(100_000)), "not an answer of etcd"),
        (http("500 Internal Server Error", "oh"), "HTTP 500: oh"),
        (http("404 Not Found", ""), "HTTP 404: an empty answer"),
        (cut, ""),
        (plain("SSH-2.0-OpenSSH\r\n"), ""),
        (plain(""), ""),
        (plain("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n"), ""),
        (Answer { bytes: Vec::new(), endless: false, closes: false }, "in time"),
    ];
    for (answer, part) in servers {
        let (address, _) = server(answer).await;
        let store = store(&[&address]).await;
        let why = trouble(&store).await;
        assert!(why.starts_with(&address) && why.contains(part), "{part}: {why}");
        assert!(why.len() < 500 && !why.contains(char::is_control), "{why:?}");
        let begin = Instant::now();
        assert!(store.put(join(store.seat(), 1)).await.is_err());
        assert!(begin.elapsed() < Duration::from_secs(5), "a command ends in time");
        assert_eq!(store.watch().borrow().clone(), None);
        store.close().await;
    }
    let store = store(&[&closed]).await;
    let why = trouble(&store).await;
    assert!(why.contains("refused"), "{why}");
    let seat = doorway_node::members::Seat {
        id: store.seat(),
        name: "a".into(),
        address: "at-a".into(),
        voter: true,
    };
    let found = store.found_with(begin(Record::new(1, 2_000, 0, vec![seat]))).await;
    assert!(matches!(found, Err(FoundError::Etcd(_))), "{found:?}");
    assert_eq!(store.cluster(), None);
}

#[tokio::test]
async fn an_answer_without_an_end_does_not_fill_the_memory() {
    let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7fffffff\r\n".to_vec();
    let (address, sent) = server(Answer { bytes, endless: true, closes: false }).await;
    let store = store(&[&address]).await;
    let told = timeout(Duration::from_secs(20), trouble(&store)).await.unwrap();
    assert!(told.contains("more than 12582912 bytes") || told.contains("in time"), "{told}");
    let before = sent.load(Ordering::Relaxed);
    store.close().await;
    sleep(Duration::from_millis(300)).await;
    let after = sent.load(Ordering::Relaxed);
    sleep(Duration::from_millis(300)).await;
    assert_eq!(sent.load(Ordering::Relaxed), after, "the connections are closed ({before} before)");
}

#[tokio::test]
async fn all_addresses_are_tried() {
    let (garbage, _) = server(http("200 OK", "garbage")).await;
    let (silent, _) = server(Answer { bytes: Vec::new(), endless: false, closes: true }).await;
    let store = store(&[&garbage, &silent]).await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let why = trouble(&store).await;
        seen.insert(why.starts_with(&garbage));
        if seen.len() == 2 {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("only one of two addresses is used");
}
