//! Clients that take locks again and again, while something happens to the group.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, scope, sleep, spawn};
use std::time::{Duration, Instant};

use doorway_client::blocking::{Client, Grant};
use doorway_client::{Code, Endpoint, Error, Options};

use crate::group::Group;

/// Which locks a client takes.
#[derive(Clone, Copy)]
pub(crate) enum LockChoice {
    /// A lock that was last used at the same node. It needs no other node.
    Here,
    /// A lock that was never used before. It needs all nodes.
    New,
}

/// The number of the next new lock.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A client of a node.
pub(crate) fn client(group: &Group, node: usize) -> Client {
    let endpoint: Endpoint = group.socket(node).parse().expect("an endpoint");
    let options = Options::default().label("bench").patience(Duration::from_mins(1));
    Client::connect(endpoint, &options).expect("the node answers")
}

/// Acquire a lock. A node that is not a member at the moment refuses it and says that the client
/// may ask again, so this asks until the lock is granted.
fn enter(client: &Client, name: &str) -> Grant {
    loop {
        match client.acquire(name).enter() {
            Ok(grant) => return grant,
            Err(Error::Refused(refusal)) if refusal.code == Code::Unavailable => {
                sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{name} is not granted: {error}"),
        }
    }
}

/// Locks that are held, and the clients that hold them.
pub(crate) fn hold(group: &Group, count: usize) -> Vec<Grant> {
    let threads: Vec<JoinHandle<Vec<Grant>>> = (0..3)
        .map(|node| {
            let client = client(group, node);
            let take = move |number| {
                let name = format!("held/{node}/{number}");
                enter(&client, &name)
            };
            spawn(move || (0..count / 3).map(take).collect())
        })
        .collect();
    threads.into_iter().flat_map(|thread| thread.join().expect("it holds")).collect()
}

/// Clients of one node, each of which holds ten locks.
pub(crate) fn hold_at(group: &Group, node: usize, clients: usize) -> Vec<(Client, Vec<Grant>)> {
    let hold = |number: usize| {
        let client = client(group, node);
        let enter = |lock: usize| {
            client.acquire(&format!("kept/{number}/{lock}")).enter().expect("a free lock")
        };
        let grants = (0..10).map(enter).collect();
        (client, grants)
    };
    (0..clients).map(hold).collect()
}

/// The longest time that a client at each of these nodes waits for a lock that nobody else wants,
/// while something happens.
pub(crate) fn longest(
    group: &mut Group,
    nodes: &[(usize, LockChoice)],
    what: impl FnOnce(&mut Group),
) -> Duration {
    let clients: Vec<Client> = nodes.iter().map(|(node, _)| client(group, *node)).collect();
    let over = AtomicBool::new(false);
    scope(|scope| {
        let measure = |(client, (node, wish)): (&Client, &(usize, LockChoice))| {
            let (client, node, wish, over) = (client.clone(), *node, *wish, &over);
            scope.spawn(move || {
                let mut longest = Duration::ZERO;
                for number in 0_u64.. {
                    let name = match wish {
                        LockChoice::Here => format!("here/{node}"),
                        LockChoice::New => format!("new/{}", NEXT.fetch_add(1, Ordering::Relaxed)),
                    };
                    let begin = Instant::now();
                    let grant = enter(&client, &name);
                    // The first one may have to come here.
                    if number > 0 {
                        longest = longest.max(begin.elapsed());
                    }
                    drop(grant);
                    if over.load(Ordering::Relaxed) {
                        return longest;
                    }
                    sleep(Duration::from_millis(1));
                }
                longest
            })
        };
        let threads: Vec<_> = clients.iter().zip(nodes).map(measure).collect();
        sleep(Duration::from_millis(100));
        what(group);
        over.store(true, Ordering::Relaxed);
        let times = threads.into_iter().map(|it| it.join().expect("it measures"));
        times.max().unwrap_or_default()
    })
}
