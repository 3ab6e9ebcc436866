//! Many locks of a group: clients of three nodes that rarely want the same lock.
//!
//! A client takes another lock each time, and the node that had it last is mostly another one. So
//! nearly every grant needs messages between nodes.

use std::io;
use std::time::{Duration, Instant};

use crate::Extent;
use crate::group::{self, Group};
use crate::ours::Doorway;
use crate::servers::{Servers, clients};
use crate::shared::rivals::{pairs, patiently};
use crate::shared::samples::Samples;
use crate::shared::table::{Row, Table, progress};

/// How many clients there are, and how many locks they use.
const CROWD: usize = 16;
const LOCKS: usize = 10_000;

pub(crate) fn measure(extent: Extent, servers: &Servers, table: &mut Table) {
    let (placement, turn) = (servers.placement, extent.turn);
    let now = Group::start(placement, &std::env::current_exe().unwrap());
    let before = group::program_before().map(|program| Group::start(placement, &program));
    let groups: Vec<&Group> = before.iter().chain([&now]).collect();
    let mut times = vec![Samples::default(); groups.len()];
    for round in 1..=extent.rounds {
        progress(&format!("many locks of 3 nodes, {placement}, {round} of {}", extent.rounds));
        for (group, times) in groups.iter().zip(&mut times) {
            let mut sockets = group.sockets();
            // In the next round, the clients and their locks are at other nodes.
            let places = sockets.len();
            sockets.rotate_left(round % places);
            times.extend(clients(placement, "", async move |_: &str| spread(turn, &sockets).await));
        }
    }
    let what = format!("{CROWD} clients of 3 nodes, {LOCKS} locks");
    let seconds = turn.as_secs_f64() * extent.rounds as f64;
    let rate = |times: &Samples| times.count() as f64 / seconds;
    let row = |what: &str, times: Samples| {
        let row = Row::of(what).at(placement).per_second(rate(&times));
        row.times(times)
    };
    let (now, before) = (times.pop().unwrap_or_default(), times.pop());
    let ratio = before.as_ref().map(|before| rate(&now) / rate(before));
    if let Some(before) = before {
        table.add(row(&format!("{what}, before"), before));
    }
    let ours = row(&what, now);
    table.add(match ratio {
        Some(ratio) => ours.ratio("before", ratio).judged("2 x before", ratio >= 2.0),
        None => ours,
    });
}

/// The times of pairs of clients that are spread over the nodes.
async fn spread(turn: Duration, sockets: &[String]) -> io::Result<Samples> {
    let mut clients = Vec::new();
    for (number, socket) in (0..CROWD).zip(sockets.iter().cycle()) {
        clients.push(patiently::<Doorway>(socket, number).await?);
    }
    pairs(clients, Instant::now() + turn / 5, turn, LOCKS).await
}
