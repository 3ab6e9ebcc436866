//! Every algorithm of the list, exhaustively at small size.

use std::sync::Arc;

use doorway_core::algorithms::{self, ALL, Task};
use doorway_core::{Algorithm, Channel, Shape, Start};
use doorway_lab::explore::{Verdict, explore};
use doorway_lab::{Limits, World};

struct Exhaust {
    size: usize,
    acquires: u32,
    forgetting: bool,
    limit: usize,
}

impl Task for Exhaust {
    type Output = Verdict;

    fn run<A: Algorithm>(self) -> Verdict {
        let group =
            Arc::new(A::INFO.group(self.size, &Shape::default()).expect("small groups exist"));
        let mut limits = Limits::reliable(&group, self.acquires);
        limits.forgetting = self.forgetting;
        let channel: Channel = A::INFO.channel;
        explore(World::<A>::new(group, &Start::default(), channel, limits), self.limit)
    }
}

#[test]
fn every_algorithm_is_safe_and_never_stuck_at_small_size() {
    // `ONLY=relay cargo test ...` looks at one of them.
    let only = std::env::var("ONLY").ok();
    let chosen = |name: &str| only.as_ref().is_none_or(|only| only == name);
    for entry in ALL.iter().filter(|entry| entry.info.refuted.is_none() && chosen(entry.info.name))
    {
        for (size, acquires, forgetting) in
            [(1, 2, true), (2, 2, false), (2, 2, true), (3, 1, false), (3, 1, true)]
        {
            let task = Exhaust { size, acquires, forgetting, limit: 300_000 };
            let verdict = algorithms::with(entry.info.name, task).unwrap();
            println!("{} n={size} k={acquires} {forgetting}: {verdict:?}", entry.info.name);
            assert!(!matches!(verdict, Verdict::Violated { .. }), "{}", entry.info.name);
        }
    }
}
