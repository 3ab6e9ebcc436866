//! Promises that are longer than the lease of the node that makes them.

use doorway_node::members::RecordError;
use doorway_node::{BreakError, Name};

use super::*;

/// Longer than a lease.
const LENGTH: Duration = Duration::from_secs(5);

fn orders() -> Name {
    Name::new("orders").expect("a name")
}

/// A group whose third node holds `orders`, promised for this long. Returns the fence.
async fn promised(length: Option<Duration>) -> (Group, doorway_node::Fence) {
    let group = Group::started(3).await;
    let guard = group.lock(2, "orders").await;
    let fence = guard.fence();
    group.node(2).hold(&orders(), fence, length).await.expect("the group agrees");
    assert!(!guard.is_lost());
    std::mem::forget(guard); // The client lives on in another process.
    (group, fence)
}

/// The machine of a holder dies. Other locks are free after its lease, and this one after the time
/// that its client was promised.
#[tokio::test]
async fn a_promise_outlives_its_node() {
    let (mut group, fence) = promised(Some(LENGTH)).await;
    let begin = Instant::now();
    group.kill(2).await;
    group.together(2).await;
    drop(group.lock(0, "other").await);
    let early = timeout(LENGTH / 2, group.node(0).lock("orders")).await;
    assert!(early.is_err(), "the client was promised the lock");
    let closed = group.node(0).closed_locks();
    let [closed] = closed.as_slice() else { panic!("{closed:?}") };
    let name = group.configs[2].me.clone();
    assert_eq!((&closed.lock, &closed.node, closed.fence), (&orders(), &name, fence));
    assert!(closed.left.is_some_and(|left| left < LENGTH), "{closed:?}");
    let why = group.node(0).open("orders").expect("a name").why().await;
    assert_eq!(why.closed.len(), 1);
    let next = group.lock(1, "orders").await;
    let least = LENGTH + LEASE * 8 / 10;
    assert!(begin.elapsed() > least, "it was granted after {:?}", begin.elapsed());
    assert!(next.fence() > fence);
    assert_eq!(group.register.holds().iter().count(), 0);
    drop(next);
    drop(group.lock(0, "orders").await);
}

/// An operator who knows that the client is gone opens the lock at once. A promise without end ends
/// in no other way.
#[tokio::test]
async fn an_operator_ends_a_promise() {
    let (mut group, fence) = promised(None).await;
    group.kill(2).await;
    group.together(2).await;
    let waiting = tokio::spawn({
        let node = group.node(0).clone();
        async move { node.lock("orders").await.map(|guard| guard.fence()) }
    });
    sleep(LEASE).await;
    assert!(!waiting.is_finished(), "the lock is promised without end");
    assert_eq!(group.node(1).break_closed(&orders(), doorway_node::Fence::new(9, 9)).await, Ok(0));
    let store = group.stores[1].as_ref().expect("a store");
    store.refuse_drops(true);
    let refused = BreakError::Refused(RecordError::UnknownSeat);
    assert_eq!(group.node(1).break_closed(&orders(), fence).await, Err(refused));
    assert!(!waiting.is_finished(), "the lock is still promised");
    store.refuse_drops(false);
    assert_eq!(group.node(1).break_closed(&orders(), fence).await, Ok(1));
    let next = timeout(LONG, waiting).await.expect("in time").expect("no panic").expect("a grant");
    assert!(next > fence, "a request that waited is granted");
}

/// A process that is started again takes over the promises of its predecessor.
#[tokio::test]
async fn a_restarted_node_keeps_its_promises() {
    let (mut group, fence) = promised(Some(LENGTH)).await;
    group.kill(2).await;
    group.start(2, true).await;
    let node = group.node(2).clone();
    let again = node.reclaim("orders", Mode::Exclusive, fence, node.session());
    let again = again.expect("the predecessor is still a member");
    let taken = node.hold(&orders(), fence, Some(LENGTH));
    node.serve();
    taken.await.expect("the group agrees");
    group.together(3).await;
    assert!(!again.is_lost());
    assert!(group.node(0).closed_locks().is_empty(), "nothing is closed");
    let member = node.membership().and_then(|it| it.member);
    let holds = group.register.holds();
    assert_eq!(holds.iter().map(|(id, _)| Some(id.member)).collect::<Vec<_>>(), [member]);
    drop(again);
    node.drop_hold(&orders(), fence).await.unwrap();
    assert_eq!(group.register.holds().iter().count(), 0);
    assert!(group.lock(0, "orders").await.fence() > fence);
}

/// A node that lapses cannot take back what it has promised: its client may not know of the loss.
#[tokio::test]
async fn a_promise_outlives_the_membership_of_its_node() {
    let (group, fence) = promised(Some(LENGTH)).await;
    let store = group.stores[2].as_ref().expect("a store");
    let begin = Instant::now();
    store.cut(true);
    group.together_without(2).await;
    store.cut(false);
    group.together(3).await;
    let next = group.lock(2, "orders").await;
    assert!(begin.elapsed() > LENGTH, "it was granted after {:?}", begin.elapsed());
    assert!(next.fence() > fence);
}
