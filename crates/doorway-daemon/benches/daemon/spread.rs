//! Contention between nodes: clients of three nodes that all want the same lock.

use std::io;
use std::time::{Duration, Instant};

use doorway_client::blocking::Client;

use crate::Extent;
use crate::group::{self, Group};
use crate::ours::{self, Doorway};
use crate::servers::{Servers, clients};
use crate::shared::pin::Placement;
use crate::shared::rivals::{Rival as _, patiently};
use crate::shared::table::{Row, Table, progress};

/// How many clients each node has.
const SPREADS: [[usize; 3]; 4] = [[3, 3, 2], [1, 1, 6], [4, 4, 0], [1, 2, 5]];

/// The grants of each client, in all turns together.
#[derive(Clone, Default)]
struct Grants {
    of_clients: Vec<u64>,
    seconds: f64,
}

impl Grants {
    fn add(&mut self, other: Self) {
        self.of_clients.resize(other.of_clients.len(), 0);
        for (mine, more) in self.of_clients.iter_mut().zip(other.of_clients) {
            *mine += more;
        }
        self.seconds += other.seconds;
    }

    fn rate(&self) -> f64 {
        self.of_clients.iter().sum::<u64>() as f64 / self.seconds
    }

    /// Jain's index: one if all clients had the same share.
    fn fairness(&self) -> f64 {
        let sum: f64 = self.of_clients.iter().map(|&count| count as f64).sum();
        let squares: f64 = self.of_clients.iter().map(|&count| (count as f64).powi(2)).sum();
        sum.powi(2) / (self.of_clients.len() as f64 * squares)
    }
}

/// The clients: tasks of one thread, or a thread for each. Threads need longer until they ask
/// again, and do so in any order.
#[derive(Clone, Copy)]
enum Clients {
    Tasks,
    Threads,
    /// Tasks that pause after each release, so that it is of no use to keep the lock for them.
    Pausing,
}

/// How long a client pauses, if it does.
const PAUSE: Duration = Duration::from_millis(5);

/// What is compared: clients, and their spread.
const CASES: [(Clients, [usize; 3]); 9] = {
    let [a, b, c, d] = SPREADS;
    [
        (Clients::Tasks, a),
        (Clients::Tasks, b),
        (Clients::Tasks, c),
        (Clients::Tasks, d),
        (Clients::Threads, a),
        (Clients::Threads, b),
        (Clients::Threads, c),
        (Clients::Threads, d),
        (Clients::Pausing, a),
    ]
};

pub(crate) fn measure(extent: Extent, servers: &Servers, table: &mut Table) {
    let (placement, turn) = (servers.placement, extent.turn);
    let now = Group::start(placement, &std::env::current_exe().unwrap());
    let before = group::program_before().map(|program| Group::start(placement, &program));
    let groups: Vec<&Group> = before.iter().chain([&now]).collect();
    let mut grants = CASES.map(|_| vec![Grants::default(); groups.len()]);
    for round in 1..=extent.rounds {
        for ((kind, spread), grants) in CASES.into_iter().zip(&mut grants) {
            let shown = title(kind, spread);
            progress(&format!("{shown}, {placement}, {round} of {}", extent.rounds));
            for (group, grants) in groups.iter().zip(grants) {
                let sockets = group.sockets();
                grants.add(match kind {
                    Clients::Tasks => clients(placement, "", async move |_: &str| {
                        tasks(turn, &sockets, spread, None).await
                    }),
                    Clients::Pausing => clients(placement, "", async move |_: &str| {
                        tasks(turn, &sockets, spread, Some(PAUSE)).await
                    }),
                    Clients::Threads => threads(turn, placement, &sockets, spread),
                });
            }
        }
    }
    for ((kind, spread), grants) in CASES.into_iter().zip(grants) {
        let what = title(kind, spread);
        let row = |what: &str, grants: &Grants| {
            let row = Row::of(what).at(placement).per_second(grants.rate());
            row.fairness(grants.fairness())
        };
        let Some((now, before)) = grants.split_last() else { continue };
        let fair = now.fairness() >= 0.98;
        let mut ours = row(&what, now).judged("Jain 0.98", fair);
        if let Some(before) = before.first() {
            table.add(row(&format!("{what}, before"), before));
            let ratio = now.rate() / before.rate();
            let goal = "Jain 0.98, 0.9 x before";
            ours = ours.ratio("before", ratio).judged(goal, fair && ratio >= 0.9);
        }
        table.add(ours);
    }
}

fn title(clients: Clients, spread: [usize; 3]) -> String {
    let kind = match clients {
        Clients::Tasks => "tasks",
        Clients::Threads => "threads",
        Clients::Pausing => "pausing",
    };
    let spread = spread.map(|count| count.to_string()).join("/");
    format!("one lock, 8 clients ({kind}) of 3 nodes, {spread}")
}

/// The socket of each client.
fn places(sockets: &[String], spread: [usize; 3]) -> impl Iterator<Item = &String> {
    sockets.iter().zip(spread).flat_map(|(socket, count)| std::iter::repeat_n(socket, count))
}

/// Clients that all want the same lock all the time, as tasks of one thread.
async fn tasks(
    turn: Duration,
    sockets: &[String],
    spread: [usize; 3],
    pause: Option<Duration>,
) -> io::Result<Grants> {
    let mut clients = Vec::new();
    for socket in places(sockets, spread) {
        clients.push(patiently::<Doorway>(socket, clients.len()).await?);
    }
    let begin = Instant::now() + turn / 5;
    let work = |mut client: Doorway| {
        tokio::task::spawn_local(async move {
            let mut grants = 0;
            loop {
                client.lock(0).await?;
                let now = Instant::now();
                client.unlock(0).await?;
                if let Some(pause) = pause {
                    tokio::time::sleep(pause).await;
                }
                if now >= begin + turn {
                    return io::Result::Ok(grants);
                }
                grants += u64::from(now >= begin);
            }
        })
    };
    let tasks: Vec<_> = clients.into_iter().map(work).collect();
    let mut of_clients = Vec::new();
    for task in tasks {
        of_clients.push(task.await??);
    }
    Ok(Grants { of_clients, seconds: turn.as_secs_f64() })
}

/// Clients that all want the same lock all the time, each on a thread of its own.
fn threads(turn: Duration, placement: Placement, sockets: &[String], spread: [usize; 3]) -> Grants {
    let endpoints: Vec<_> = places(sockets, spread).map(|it| ours::endpoint(it)).collect();
    // Background threads of a client run on the core on which they start.
    let connected = placement.spawn(0, move |_| {
        let clients = endpoints.iter().enumerate();
        clients.map(|(number, endpoint)| ours::blocking(endpoint, number)).collect::<Vec<_>>()
    });
    let connected = connected.join().unwrap();
    let begin = Instant::now() + turn / 5;
    let work = |client: Client| {
        placement.spawn(0, move |_| {
            let mut grants = 0;
            loop {
                let grant = client.acquire(&ours::name(0)).enter().unwrap();
                let now = Instant::now();
                grant.release().unwrap();
                if now >= begin + turn {
                    return grants;
                }
                grants += u64::from(now >= begin);
            }
        })
    };
    let threads: Vec<_> = connected.into_iter().map(work).collect();
    let of_clients = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    Grants { of_clients, seconds: turn.as_secs_f64() }
}
