//! Groups that are founded, grow, shrink, and lose members.

use std::time::Duration;

use doorway_node::members::{Answer, Command, MemberId};
use tokio::time::sleep;

use super::world::{CLUSTER, LEASE, LEASE_MS, RULES, World, join};
use crate::FoundError;

#[tokio::test(start_paused = true)]
async fn three_nodes_found_a_group_and_each_can_change_the_record() {
    let world = World::founded(&["a", "b", "c"]).await;
    for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
        let command = join(world.seat(name, true).id, number);
        let answer = world.put(name, command).await.unwrap();
        assert_eq!(answer, Answer::Joined(MemberId(number as u64)));
    }
    world.agree().await;
    let record = world.record("b").unwrap();
    assert_eq!((record.cluster, record.members.len(), record.revision), (CLUSTER, 3, 3));
    assert_eq!(world.store("c").cluster(), Some(CLUSTER));
}
