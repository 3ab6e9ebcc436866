//! The greeting is the first reply that a client gets, whatever happens meanwhile.

use std::io::Write as _;
use std::time::Duration;

use doorway_protocol::{
    ClientInfo, Code, Greeting, Hello, MAGIC, Opening, Reply, VERSIONS, Wait, put,
};

use super::client::{CONNECTION, Client};
use crate::common::settings::settings;
use crate::server::Server;

/// A hello without the magic bytes that open every connection.
fn hello(opening: Opening) -> Vec<u8> {
    let hello = Hello { versions: VERSIONS, who: ClientInfo::default(), token: None, opening };
    let mut bytes = Vec::new();
    put(&hello, &mut bytes);
    bytes
}

#[test]
fn a_client_that_connects_while_the_node_stops_is_told_so_first() {
    let server = Server::start(&settings());
    let mut holder = server.session();
    let fence = holder.acquire("a");
    let mut late: Vec<Client> = (0..20).map(|_| server.client()).collect();
    for client in &mut late {
        client.stream.write_all(&MAGIC).unwrap();
    }
    server.until("all are there", |service| service.connections() == 21);
    let service = server.service.clone();
    let stopping = server.runtime.spawn(async move {
        assert!(service.drain(Duration::from_secs(30)).await);
        service.stop().await;
    });
    assert_eq!(holder.reply(), Reply::Stopping(30_000));
    // Some clients send their hello while the holder finishes, and some never do.
    for client in &mut late[..10] {
        client.stream.write_all(&hello(Opening::New { ttl_ms: 10_000, life: CONNECTION })).unwrap();
        let greeting = client.frame::<Greeting>().expect("an answer");
        assert_eq!(greeting.unwrap_err().code, Code::Unavailable);
        assert_eq!(client.frame::<Reply>(), None);
    }
    assert!(holder.release("a", fence));
    for client in &mut late[10..] {
        let greeting = client.frame::<Greeting>().expect("an answer");
        assert_eq!(greeting.unwrap_err().code, Code::Unavailable);
        assert_eq!(client.frame::<Reply>(), None);
    }
    server.runtime.block_on(stopping).unwrap();
}

#[test]
fn grants_during_a_resume_are_told_after_the_greeting() {
    let server = Server::start(&settings());
    let (mut holder, mut waiter) = (server.session(), server.client());
    let (session, secret) = waiter.open(10_000, CONNECTION).session.unwrap();
    for _ in 0..200 {
        let fence = holder.acquire("a");
        let number = waiter.ask("a", Wait::Forever);
        server.until("it waits", |service| service.status().waiting == 1);
        let opening = Opening::Resume {
            node: None,
            session,
            secret,
            ttl_ms: 10_000,
            life: CONNECTION,
            held: Vec::new(),
            waiting: vec![number],
            more: false,
        };
        let mut again = server.client();
        again.goes_on_from(&waiter);
        let welcome = std::thread::scope(|scope| {
            let welcome = scope.spawn(|| again.hello(opening).expect("the session goes on"));
            holder.release("a", fence);
            welcome.join().unwrap()
        });
        assert_eq!(welcome.session, Some((session, secret)));
        let fence = again.granted(number);
        assert!(again.release("a", fence));
        waiter = again;
    }
}
