//! The report on why a request waits, in groups of real nodes.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use doorway_node::{Acquire, Handle};

use crate::common::{group, start};

/// Poll a request once, so that it waits.
fn begin(request: std::pin::Pin<&mut Acquire<Handle>>) {
    assert!(request.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test]
async fn a_waiter_is_told_who_is_inside_and_who_has_not_answered() {
    let (_scratch, configs) = group(3, &[]);
    let nodes = start(&configs).await;
    let session = nodes[1].session();
    let guard = nodes[1].lock("orders").session(session).await.unwrap();
    let mut request = pin!(nodes[0].lock("orders"));
    begin(request.as_mut());
    let orders = nodes[0].open("orders").unwrap();
    // The third node answers soon; the second one does not answer while it is inside.
    let why = loop {
        let why = orders.why().await;
        if why.waiters.iter().all(|waiter| waiter.missing == ["n2"]) {
            break why;
        }
    };
    assert_eq!(why.holders.len(), 1);
    let holder = &why.holders[0];
    assert_eq!((holder.node.as_str(), holder.session), ("n2", Some(session.number())));
    assert_eq!(holder.fence, Some(guard.fence()));
    assert!(holder.age < Duration::from_secs(5));
    assert_eq!((why.waiters.len(), why.waiters[0].place), (1, 0));
    assert_eq!(why.waiters[0].circle, None);
    assert!(why.elsewhere.is_empty() && why.silent.is_empty() && why.away.is_empty());
    // The holder's node sees who waits for it.
    let why = nodes[1].open("orders").unwrap().why().await;
    assert_eq!((why.waiters.len(), why.elsewhere.len()), (0, 1));
    assert_eq!(why.elsewhere[0].node, "n1");
}

#[tokio::test]
async fn two_sessions_that_wait_for_each_other_are_a_circle() {
    let (_scratch, configs) = group(2, &[]);
    let nodes = start(&configs).await;
    let (one, two) = (nodes[0].session(), nodes[1].session());
    let _first = nodes[0].lock("a").session(one).await.unwrap();
    let _second = nodes[1].lock("b").session(two).await.unwrap();
    let (mut left, mut right) =
        (pin!(nodes[0].lock("b").session(one)), pin!(nodes[1].lock("a").session(two)));
    begin(left.as_mut());
    begin(right.as_mut());
    let why = nodes[0].open("b").unwrap().why().await;
    let circle = vec![("n1".to_owned(), one.number()), ("n2".to_owned(), two.number())];
    assert_eq!(why.waiters[0].circle, Some(circle));
}

#[tokio::test]
async fn a_member_that_is_away_is_named() {
    let (_scratch, configs) = group(3, &[]);
    let nodes = start(&configs).await;
    drop(nodes[0].lock("orders").await.unwrap());
    nodes[2].stop().await;
    let orders = nodes[0].open("orders").unwrap();
    while nodes[0].away().is_empty() {
        tokio::task::yield_now().await;
    }
    let why = orders.why().await;
    assert_eq!(why.away.len(), 1);
    assert_eq!(why.away[0].0, "n3");
    assert!(why.view.is_some() && why.awaited.is_empty(), "the others go on in their view");
    // A lock whose permission is at this node is served without the member.
    assert!(orders.try_lock().unwrap().is_some());
}
