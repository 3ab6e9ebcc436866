//! All requests of an async client.

use std::time::Duration;

use doorway_client::{Client, Code, Error, Life, Options, State};
use tokio::time::timeout;

use crate::common::daemon::Daemon;
use crate::common::{PATIENCE, code, until_async};

async fn connect(daemon: &Daemon) -> Client {
    let options = Options::default().label("an async client");
    Client::connect(daemon.endpoint(), &options).await.expect("a session")
}

async fn waiting(client: &Client, number: u64) {
    let waiting = async || client.status().await.expect("a status").waiting;
    until_async("this number of requests waits", async || waiting().await == number).await;
}

#[tokio::test]
async fn every_operation_of_the_client_works() {
    let daemon = Daemon::alone("");
    let (one, other) = (connect(&daemon).await, connect(&daemon).await);
    let grant = one.acquire("a").enter().await.unwrap();
    let fence = grant.fence();
    let refused = other.acquire("a").try_now().enter().await.unwrap_err();
    assert!(matches!(refused, Error::NotFree(_)), "{refused}");
    let within = other.acquire("a").within(Duration::from_millis(30)).enter().await;
    assert_eq!(code(&within.unwrap_err()), Code::NotFree);
    assert_eq!(other.inspect("a").await.unwrap().holders[0].fence, fence);
    assert_eq!(other.list("", None).await.unwrap().locks.len(), 1);
    let free = tokio::spawn({
        let other = other.clone();
        async move { other.await_free("a").await }
    });
    // The node answers in order, so it knows the question when it has answered the next one.
    tokio::task::yield_now().await;
    other.status().await.unwrap();
    assert!(!free.is_finished());
    grant.release().await.unwrap();
    free.await.unwrap().unwrap();
    assert!(!one.release("a", fence).await.unwrap());
    let both = [&one, &other].map(|client| client.acquire("s").shared().enter());
    for grant in futures_util::future::try_join_all(both).await.unwrap() {
        assert_eq!(grant.state(), State::Held);
    }
    let permit = one.acquire("p").permits(3).enter().await.unwrap();
    assert_eq!(code(&other.acquire("p").enter().await.unwrap_err()), Code::NotServed);
    other.break_lock("p", permit.fence()).await.unwrap();
    assert!(permit.release().await.is_err());
    let options = Options::default().life(Life::Lease);
    let script = Client::connect(daemon.endpoint(), &options).await.unwrap();
    let leased = script.acquire("leased").enter().await.unwrap().keep();
    drop(script);
    one.renew("leased", leased).await.unwrap();
    assert!(one.release("leased", leased).await.unwrap());
}

/// A future that is dropped withdraws its request, and the next request in the queue is granted.
#[tokio::test]
async fn a_client_that_stops_waiting_does_not_block_others() {
    let daemon = Daemon::alone("");
    let (one, other, third) =
        (connect(&daemon).await, connect(&daemon).await, connect(&daemon).await);
    let grant = one.acquire("a").enter().await.unwrap();
    let impatient = tokio::spawn(async move {
        let _ = timeout(Duration::from_millis(50), other.acquire("a").enter()).await;
        other
    });
    waiting(&one, 1).await;
    let next = tokio::spawn(async move { third.acquire("a").enter().await.map(|it| it.fence()) });
    let other = impatient.await.unwrap();
    waiting(&one, 1).await;
    let fence = grant.fence();
    grant.release().await.unwrap();
    assert!(next.await.unwrap().unwrap() > fence);
    // The withdrawn request holds nothing.
    other.acquire("a").within(PATIENCE).enter().await.unwrap().release().await.unwrap();
}

/// Many requests wait, and give up just when the lock is passed on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_cancelled_while_they_are_granted_leave_nothing_held() {
    let daemon = Daemon::alone("");
    let mut all = tokio::task::JoinSet::new();
    for index in 0..8_u64 {
        let client = connect(&daemon).await;
        all.spawn(async move {
            for round in 0..60 {
                let time = Duration::from_micros((index * 131 + round * 37) % 1500);
                if let Ok(Ok(grant)) = timeout(time, client.acquire("a").enter()).await {
                    let _ = grant.release().await;
                }
            }
            client
        });
    }
    let clients = all.join_all().await;
    let grant = clients[0].acquire("a").within(PATIENCE).enter().await.unwrap();
    waiting(&clients[0], 0).await;
    assert_eq!(clients[0].status().await.unwrap().held, 1);
    grant.release().await.unwrap();
}
