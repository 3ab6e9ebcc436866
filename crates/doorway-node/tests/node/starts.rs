//! Nodes that stop, start again, lose their directories, or are started twice.

use std::task::{Context, Waker};
use std::time::Duration;

use doorway_node::{Config, EndReason, Node, StartError};
use tokio::time::timeout;

use crate::common::{Scratch, addresses, group, start};

/// Check that every node can enter, one after another.
async fn all_enter(nodes: &[&Node]) {
    for node in nodes {
        let entered = node.lock("orders").within(Duration::from_secs(30)).await;
        assert!(entered.is_ok(), "{node:?}: {entered:?}, away {:?}", node.away());
    }
}

/// A second configuration of the same node, with another directory.
fn twin(config: &Config, scratch: &Scratch) -> Config {
    let mut twin = config.clone();
    twin.data = Some(scratch.path().join("twin"));
    twin.members[0].address = addresses(1).remove(0);
    twin
}

/// Start a second process under the name of the first. The first one must end and say so.
async fn superseded(starts: usize) {
    let (scratch, configs) = group(3, &[]);
    for _ in 1..starts {
        Node::start(configs[0].clone()).await.expect("a start").stop().await;
    }
    let nodes = start(&configs).await;
    all_enter(&nodes.iter().collect::<Vec<_>>()).await;
    let guard = nodes[0].lock("held").await.expect("a lock");
    let twin = Node::start(twin(&configs[0], &scratch)).await.expect("a start");
    timeout(Duration::from_secs(30), guard.lost()).await.expect("the first one is told");
    all_enter(&[&twin, &nodes[1], &nodes[2]]).await;
    let next = nodes[1].lock("held").within(Duration::from_secs(30)).await.expect("a lock");
    assert!(next.fence() > guard.fence());
    assert!(nodes[0].lock("orders").await.is_err(), "it has stopped");
    assert!(matches!(nodes[0].ended().await, EndReason::Superseded(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_with_the_same_epoch_takes_the_place_of_the_first() {
    superseded(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_with_a_lower_epoch_takes_the_place_of_the_first() {
    superseded(4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_directory_was_lost_comes_back_and_fences_grow() {
    let (scratch, configs) = group(3, &[]);
    let nodes = start(&configs).await;
    all_enter(&nodes.iter().collect::<Vec<_>>()).await;
    let before = nodes[0].lock("orders").await.unwrap().fence();
    nodes[0].stop().await;
    std::fs::remove_dir_all(scratch.path().join("n1")).unwrap();
    let again = Node::start(configs[0].clone()).await.unwrap();
    all_enter(&[&again, &nodes[1], &nodes[2]]).await;
    assert!(again.lock("orders").await.unwrap().fence() > before);
}

/// A node with the same seed must not be taken for its previous process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_seed_can_be_started_again() {
    let (_scratch, mut configs) = group(3, &[]);
    configs[1].seed = Some(7);
    let nodes = start(&configs).await;
    all_enter(&nodes.iter().collect::<Vec<_>>()).await;
    nodes[1].stop().await;
    let again = Node::start(configs[1].clone()).await.unwrap();
    all_enter(&[&again, &nodes[0], &nodes[2]]).await;
}

/// When `stop` returns, the port and the directory are free, even if clones of the node are left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_node_can_be_started_again_at_once() {
    let (_scratch, configs) = group(2, &[]);
    let mut old = Vec::new();
    for _ in 0..50 {
        let node = Node::start(configs[1].clone()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        node.stop().await;
        old.push(node);
    }
}

/// Several callers may stop a node, and some may give up waiting: when `stop` returns, the port and
/// the directory are free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everyone_who_stops_a_node_waits_until_it_has_stopped() {
    let (_scratch, configs) = group(2, &[]);
    for _ in 0..50 {
        let node = Node::start(configs[1].clone()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut given_up = Box::pin(node.stop());
        let _ = given_up.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(given_up);
        let (one, two) = (node.clone(), node.clone());
        let first = tokio::spawn(async move { one.stop().await });
        two.stop().await;
        let again = Node::start(configs[1].clone()).await;
        assert!(again.is_ok(), "{again:?}");
        first.await.unwrap();
        node.stop().await;
        again.unwrap().stop().await;
    }
}

/// Bad certificates are found before anything changes.
#[tokio::test]
async fn a_bad_certificate_costs_no_epoch() {
    let (scratch, configs) = group(2, &[]);
    let mut bad = configs[0].clone();
    bad.tls.as_mut().unwrap().certificate = b"no certificate".to_vec();
    let error = Node::start(bad).await.unwrap_err();
    assert!(matches!(error, StartError::Identity(_)), "{error}");
    assert!(!scratch.path().join("n1").exists());
}

/// Without its runtime a node can do nothing more, and the holders of its locks are told.
#[test]
fn the_end_of_the_runtime_is_the_end_of_the_node() {
    let (_scratch, configs) = group(2, &[]);
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (first, second) = (runtime(), runtime());
    let other = second.block_on(Node::start(configs[1].clone())).unwrap();
    let node = first.block_on(Node::start(configs[0].clone())).unwrap();
    let guard = node.lock("orders").within(Duration::from_secs(30));
    let guard = first.block_on(guard).unwrap();
    let ended = node.ended();
    assert!(!guard.is_lost());
    drop(first);
    assert!(guard.is_lost());
    assert_eq!(second.block_on(ended), EndReason::RuntimeEnded);
    drop((guard, other));
}
