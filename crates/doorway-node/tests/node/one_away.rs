//! Which locks are granted while one of three members is away: the table in docs/operators.md.

use std::collections::BTreeSet;
use std::time::Duration;

use doorway_node::Node;
use doorway_node::locks::served;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::common::{group, rule};

/// The page with the table.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operators.md");

/// The heading of the table.
const HEADING: &str = "| algorithm | a new lock | a lock last used at a node that is up \
                       | a lock last used at the node that died |\n\
                       |---|---|---|---|\n";

/// The algorithm that serves a lock if no rule says otherwise.
const DEFAULT: &str = "carvalho-roucairol";

/// How long a request may take that can be granted, also on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// For how long a request waits that cannot be granted.
const VAIN: Duration = Duration::from_secs(3);

/// How many locks are tried in each case: each has a coordinator of its own, if it has any.
const LOCKS: usize = 8;

/// The algorithm whose tree depends on which messages are faster.
const TREE_BY_CHANCE: &str = "raymond-echo";

/// Where a lock was last used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LastUse {
    /// Nowhere.
    New,
    /// At a node that is up.
    Up,
    /// At the node that died.
    Dead,
}

const USES: [LastUse; 3] = [LastUse::New, LastUse::Up, LastUse::Dead];

/// A request at a node that is up, and whether it was granted.
#[derive(Clone, Debug)]
struct Trial {
    algorithm: &'static str,
    used: LastUse,
    /// The member that died.
    victim: usize,
    /// The name of the lock. Each group has the same names.
    lock: String,
    granted: bool,
}

/// Enter a lock at a node and leave it again. Returns whether it was granted in time.
async fn enter(node: Node, lock: String, patience: Duration) -> bool {
    timeout(patience, node.lock(&lock)).await.is_ok_and(|entered| entered.is_ok())
}

/// Kill a member of a new group, and try locks at the two others.
fn trials(victim: usize) -> Vec<Trial> {
    let rules: Vec<_> =
        served().into_iter().map(|algorithm| rule(algorithm, permits(algorithm))).collect();
    let (_scratch, configs) = group(3, &rules);
    let runtimes: [Runtime; 3] = std::array::from_fn(|_| Runtime::new().expect("threads"));
    let begin = |(config, runtime): (_, &Runtime)| runtime.block_on(Node::start(config));
    let nodes: Vec<Node> = configs
        .into_iter()
        .zip(&runtimes)
        .map(|started| begin(started).expect("a start"))
        .collect();
    let others = || (0..3).filter(move |node| *node != victim);
    // Each request has a lock of its own, so that requests in vain keep nobody out.
    let mut requests = Vec::new();
    for (algorithm, used) in
        served().into_iter().flat_map(|name| USES.into_iter().map(move |used| (name, used)))
    {
        let users: Vec<Option<usize>> = match used {
            LastUse::New => vec![None],
            LastUse::Up => others().map(Some).collect(),
            LastUse::Dead => vec![Some(victim)],
        };
        let pairs = users.iter().flat_map(|user| others().map(move |asker| (*user, asker)));
        for (pair, (user, asker)) in pairs.enumerate() {
            for number in 0..LOCKS {
                let lock = format!("{algorithm}/{used:?}/{pair}/{number}");
                let trial = Trial { algorithm, used, victim, lock, granted: false };
                requests.push((user, asker, trial));
            }
        }
    }
    let all_used = async {
        let mut uses = JoinSet::new();
        for (user, _, trial) in &requests {
            if let Some(user) = user {
                uses.spawn(enter(nodes[*user].clone(), trial.lock.clone(), LONG));
            }
        }
        uses.join_all().await.into_iter().all(|entered| entered)
    };
    assert!(runtimes[0].block_on(all_used), "all members are here");

    // As far as the others can tell, its process is killed: all links are cut at once.
    let mut runtimes: Vec<Option<Runtime>> = runtimes.into_iter().map(Some).collect();
    runtimes[victim].take().expect("a runtime").shutdown_background();
    let runtime = runtimes.iter().flatten().next().expect("a survivor");
    runtime.block_on(async {
        let mut trials = JoinSet::new();
        for (_, asker, trial) in requests {
            let entered = enter(nodes[asker].clone(), trial.lock.clone(), VAIN);
            trials.spawn(async move { Trial { granted: entered.await, ..trial } });
        }
        trials.join_all().await
    })
}

fn permits(algorithm: &str) -> u32 {
    if algorithm == "raymond-k" { 2 } else { 1 }
}

/// How many of these requests were granted, in words.
fn share<'a>(trials: impl Iterator<Item = &'a Trial>) -> String {
    let (mut granted, mut all) = (0, 0);
    for trial in trials {
        granted += usize::from(trial.granted);
        all += 1;
    }
    match granted {
        0 => "waits".to_owned(),
        _ if granted == all => "granted".to_owned(),
        _ if granted * 2 == all => "half of the requests granted".to_owned(),
        _ => format!("{granted} of {all} requests granted"),
    }
}

/// What became of the requests for one kind of locks, in words.
fn cell(trials: &[&Trial]) -> String {
    let all =
        |which: &dyn Fn(&Trial) -> bool| share(trials.iter().copied().filter(|trial| which(trial)));
    let (first, other) = (all(&|trial| trial.victim == 0), all(&|trial| trial.victim != 0));
    // The member that a lock cannot do without, if there is exactly one.
    let needed = |lock: &&str| {
        let waits = trials.iter().filter(|trial| trial.lock == *lock && !trial.granted);
        match waits.map(|trial| trial.victim).collect::<Vec<_>>()[..] {
            [only] => Some(only),
            _ => None,
        }
    };
    let locks: BTreeSet<&str> = trials.iter().map(|trial| trial.lock.as_str()).collect();
    let needed: Option<BTreeSet<usize>> = locks.iter().map(needed).collect();
    let by_chance = trials.iter().any(|trial| trial.algorithm == TREE_BY_CHANCE);
    let granted = trials.iter().filter(|trial| trial.granted).count();
    match needed {
        _ if by_chance && granted < trials.len() && granted * 2 >= trials.len() => {
            "half of the requests granted, or more: that depends on the tree".to_owned()
        }
        Some(needed) if needed.len() > 1 => "waits if its coordinator died".to_owned(),
        Some(needed) if needed.contains(&0) => "waits if the first member died".to_owned(),
        _ if first == other => first,
        _ => format!("{other}; {first} if the first member died"),
    }
}

/// One of three members is killed, under every algorithm. `UPDATE=1` writes the table of
/// docs/operators.md.
#[test]
fn which_locks_go_on_while_a_member_is_away() {
    let trials: Vec<Trial> = (0..3).flat_map(trials).collect();
    let mut algorithms = served();
    algorithms.sort_by_key(|name| *name != DEFAULT);
    let mut rows: Vec<(Vec<String>, String)> = Vec::new();
    for algorithm in algorithms {
        let cells = USES.map(|used| {
            let own = |it: &&Trial| it.algorithm == algorithm && it.used == used;
            cell(&trials.iter().filter(own).collect::<Vec<_>>())
        });
        let cells = cells.join(" | ");
        let default = if algorithm == DEFAULT { " (default)" } else { "" };
        let name = format!("`{algorithm}`{default}");
        match rows.iter_mut().find(|(_, same)| *same == cells) {
            Some((names, _)) => names.push(name),
            None => rows.push((vec![name], cells)),
        }
    }
    let line = |(names, cells): &(Vec<String>, String)| {
        let names = names.join(", ");
        ["| ", &names, " | ", cells, " |\n"].concat()
    };
    let rows: String = rows.iter().map(line).collect();
    let page = std::fs::read_to_string(PAGE).expect("docs/operators.md is there");
    let (before, after) = page.split_once(HEADING).expect("the page has this table");
    let (said, after) = after.split_once("\n\n").expect("a table ends with an empty line");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PAGE, format!("{before}{HEADING}{rows}\n{after}")).expect("it is written");
    } else {
        assert_eq!(format!("{said}\n"), rows, "UPDATE=1 writes the rows of docs/operators.md");
    }
}
