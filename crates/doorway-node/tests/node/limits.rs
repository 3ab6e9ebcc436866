//! The memory of a node is bounded, whatever is requested while a peer is unreachable.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorway_node::{AcquireError, Handle, Node};
use tokio::task::unconstrained;

use crate::common::{group, start};

/// The number of messages that may always wait for a peer.
const LIMIT: usize = 1024;

/// Make a request and give up at once.
fn ask_and_go(lock: &Handle) -> Option<AcquireError> {
    match pin!(unconstrained(lock.lock())).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(entered) => entered.err(),
        Poll::Pending => None,
    }
}

/// How many locks a node has in memory, and how many messages wait for its peer.
fn kept(node: &Node) -> (u64, usize) {
    let counters = node.counters();
    let locks = counters.rules.iter().map(|rule| rule.counts.kept).sum();
    (locks, counters.links[0].1.unacknowledged)
}

#[tokio::test]
async fn requests_for_a_member_that_is_away_come_to_an_end() {
    let (_scratch, mut configs) = group(2, &[]);
    configs[0].outstanding = 20;
    configs[0].keep_idle = 0;
    let nodes = start(&configs).await;
    let node = &nodes[0];
    let mine = node.open("mine").unwrap();
    drop(mine.lock().within(Duration::from_secs(30)).await.unwrap());
    nodes[1].stop().await;
    while node.away().is_empty() {
        tokio::task::yield_now().await;
    }
    let refused = AcquireError::Backlog { node: "n2".to_owned(), limit: LIMIT };
    let mut asked = 0;
    for number in 0..10_000 {
        match ask_and_go(&node.open(&format!("name {number}")).unwrap()) {
            None => asked += 1,
            Some(error) => assert_eq!(error, refused),
        }
    }
    assert!((1..=LIMIT).contains(&asked), "{asked} were asked for");
    let (locks, messages) = kept(node);
    // Besides the requested locks, every shard may keep as many idle ones, and one more.
    assert!(locks <= 2 * LIMIT as u64 + 64, "{locks} locks");
    assert_eq!(messages, LIMIT, "messages wait");
    assert_eq!(node.counters().waiting, 0);
    // A lock that needs no other node is served.
    drop(mine.lock().await.unwrap());
    // When the member is back, everything is served.
    let again = Node::start(configs[1].clone()).await.unwrap();
    while !node.away().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let guard = node.lock("name 9999").within(Duration::from_secs(30)).await;
    assert!(guard.is_ok(), "{guard:?}");
    drop(again);
}
