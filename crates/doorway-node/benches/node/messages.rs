//! How many messages it takes until a lock has moved from one node to the next.

use std::time::Duration;

use doorway_node::Node;
use tokio::time::sleep;

use crate::shared::table::{Row, Table, progress};
use crate::{ALGORITHMS, Extent, group, handover};

/// A time that is longer than any message takes.
const QUIET: Duration = Duration::from_millis(10);

/// Let one node hold a lock and another wait for it, and count what is sent from the release on.
pub(crate) fn measure(extent: Extent, table: &mut Table) {
    progress("messages on the way of a hand-over");
    for algorithm in ALGORITHMS {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let count = runtime.block_on(on_the_way(algorithm, 2 * extent.rounds));
        let what = format!("from release to the next entry, {algorithm}");
        table.add(Row::of(&what).messages(count).goal("1"));
    }
}

async fn on_the_way(algorithm: &str, handovers: usize) -> f64 {
    let (_scratch, configs) = group::configurations(algorithm);
    let mut nodes = Vec::new();
    for config in configs {
        nodes.push(Node::start(config).await.unwrap());
    }
    let mut guard = nodes[0].lock("orders").await.unwrap();
    let mut messages = 0;
    for turn in 1..=handovers {
        let next = tokio::spawn(nodes[turn % nodes.len()].lock("orders"));
        sleep(QUIET).await;
        let before = sent(&nodes);
        drop(guard);
        guard = next.await.unwrap().unwrap();
        messages += sent(&nodes) - before;
    }
    drop(guard);
    for node in nodes {
        node.stop().await;
    }
    messages as f64 / handovers as f64
}

fn sent(nodes: &[Node]) -> u64 {
    nodes.iter().map(|node| handover::counted(node).0).sum()
}
