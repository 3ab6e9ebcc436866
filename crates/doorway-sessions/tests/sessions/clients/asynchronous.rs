//! The async client.

use std::sync::mpsc;
use std::time::Duration;

use doorway_client::{Client, Endpoint, Endpoints, Error, LostGrant, State};
use tokio::time::timeout;

use super::host::Host;
use super::{LONG, options, until, until_async};

async fn client(host: &Host) -> Client {
    Client::connect(&host.endpoint, &options()).await.expect("the node listens")
}

#[tokio::test]
async fn two_clients_take_turns() {
    let host = Host::unix(LONG);
    let (one, two) = (client(&host).await, client(&host).await);
    let first = one.acquire("a").enter().await.unwrap();
    assert_eq!(first.state(), State::Held);
    assert!(matches!(two.acquire("a").try_now().enter().await, Err(Error::NotFree(_))));
    let waits = tokio::spawn(async move { two.acquire("a").enter().await.unwrap().fence() });
    until_async("the request waits", async || host.waiting() == 1).await;
    let fence = first.fence();
    first.release().await.unwrap();
    assert!(waits.await.unwrap() > fence);
    until("the release of the dropped grant", || host.count().0 == 0);
    drop(one);
    until("goodbye", || host.count().1 == 0);
}

#[tokio::test]
async fn dropping_the_future_withdraws_the_request() {
    let host = Host::unix(LONG);
    let client = client(&host).await;
    let grant = client.acquire("a").enter().await.unwrap();
    let wait = timeout(Duration::from_millis(20), client.acquire("a").enter());
    assert!(wait.await.is_err());
    grant.release().await.unwrap();
    let again = client.acquire("a").try_now().enter().await;
    assert!(again.is_ok(), "no other request waits: {again:?}");
    drop(again);
    // If the future is dropped after the grant has come, the grant is released.
    let lock = client.acquire("b").enter();
    let mut lock = Box::pin(lock);
    assert!(poll_once(&mut lock).await.is_none());
    until("the grant", || host.count().0 == 1);
    // The answer to the next request comes after the grant.
    client.await_free("c").await.unwrap();
    drop(lock);
    until("its release", || host.count().0 == 0);
}

#[tokio::test]
async fn a_grant_that_was_lost_while_nobody_polled_is_an_error() {
    let host = Host::unix(Duration::from_millis(600));
    let client = client(&host).await;
    let mut enter = Box::pin(client.acquire("a").enter());
    assert!(poll_once(&mut enter).await.is_none());
    until_async("the grant", async || host.count().0 == 1).await;
    // The driver receives the grant before the answer to the next request, but nobody polls the
    // future before the grant is lost.
    client.await_free("c").await.unwrap();
    host.mute(true);
    until_async("the loss", async || client.state() == State::Lost).await;
    let error = timeout(LONG, enter).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error}");
}

/// Poll a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn tasks_share_a_client() {
    let host = Host::unix(LONG);
    let client = client(&host).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    client.acquire("a").enter().await.unwrap().release().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        timeout(LONG, task).await.unwrap().unwrap();
    }
    assert_eq!(client.lock_all(["b", "a"]).await.unwrap()[0].lock().as_str(), "a");
}

#[tokio::test]
async fn a_grant_is_lost_when_the_node_is_silent() {
    let host = Host::unix(Duration::from_secs(3));
    let client = client(&host).await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel::<LostGrant>();
    client.on_lost(move |lost| tell.send(lost.clone()).unwrap());
    let grant = client.acquire("a").enter().await.unwrap();
    until_async("heartbeats", async || host.heartbeats() > 0).await;
    assert_ne!(grant.state(), State::Lost);
    host.mute(true);
    let lost = timeout(LONG, told.recv()).await.unwrap().unwrap();
    assert_eq!(lost.fence, grant.fence());
    assert!(grant.is_lost());
    host.mute(false);
    let again = timeout(LONG, client.acquire("a").enter()).await.unwrap().unwrap();
    assert!(again.fence() > grant.fence());
    assert!(grant.release().await.is_err());
}

#[test]
fn requests_are_refused_after_the_runtime_has_ended() {
    let host = Host::unix(LONG);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let client = first.block_on(client(&host));
    let (tell, told) = mpsc::channel::<LostGrant>();
    client.on_lost(move |lost| tell.send(lost.clone()).unwrap());
    let grant = first.block_on(client.acquire("a").enter()).unwrap();
    let waits = client.clone();
    let waits = std::thread::spawn(move || second.block_on(waits.acquire("a").enter()).map(drop));
    until("the request waits", || host.waiting() == 1);
    drop(first);
    let refused = waits.join().unwrap().unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused}");
    assert_eq!(told.recv_timeout(LONG).unwrap().fence, grant.fence());
    assert!(grant.is_lost());
    let refused = runtime().block_on(client.status()).unwrap_err();
    assert_eq!(refused.to_string(), "the session is over");
    until("the end of the session", || host.count() == (0, 0));
}

#[tokio::test]
async fn a_held_lock_survives_a_crash_of_the_node() {
    let host = Host::unix(Duration::from_secs(2));
    let client = client(&host).await;
    let grant = client.acquire("a").enter().await.unwrap();
    host.crash();
    let taken = client.acquire("a").try_now().enter().await;
    assert!(matches!(taken, Err(Error::NotFree(_))));
    assert_eq!(host.connections(), 2);
    assert_ne!(grant.state(), State::Lost);
    grant.release().await.unwrap();
}

#[tokio::test]
async fn a_client_uses_the_first_node_that_answers_and_goes_on_with_the_next() {
    let (silent, first) = (Host::unix(LONG), Host::unix(Duration::from_secs(2)));
    let second = Host::unix(LONG);
    silent.mute(true);
    let mut endpoints = Endpoints::from(Endpoint::parse("@doorway-clients-nobody").unwrap());
    for host in [&silent, &first, &second] {
        endpoints.push(host.endpoint.clone());
    }
    let patience = options().patience(Duration::from_secs(4));
    let client = Client::connect(endpoints, &patience).await.unwrap();
    let grant = client.acquire("a").enter().await.unwrap();
    assert_eq!((first.connections(), second.connections()), (1, 0));
    let waits = tokio::spawn({
        let client = client.clone();
        async move { client.acquire("b").within(LONG).enter().await.map(|grant| grant.is_lost()) }
    });
    let other = Client::connect(&second.endpoint, &options()).await.unwrap();
    let held = other.acquire("b").enter().await.unwrap();
    assert!(!waits.await.unwrap().unwrap(), "the nodes have nothing in common");
    drop(first);
    until_async("the lock is lost with its node", async || grant.is_lost()).await;
    assert_eq!(second.count().0, 1, "the second node has granted nothing to this client");
    let again = timeout(LONG, client.acquire("a").enter()).await.unwrap().unwrap();
    assert!(!again.is_lost() && grant.is_lost());
    drop(held);
}
