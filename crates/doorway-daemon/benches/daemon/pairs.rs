//! Acquire and release without contention.

use std::time::{Duration, Instant};

use doorway_client::blocking::Client;

use crate::Extent;
use crate::bare;
use crate::ours::{self, Doorway};
use crate::servers::{RivalFigures, Servers, clients};
use crate::shared::pin::Placement;
use crate::shared::rivals::{Postgres, Redis, alone, many, scattered};
use crate::shared::samples::Samples;
use crate::shared::table::{Row, Table, progress};

/// How many clients there are, and how many locks they use.
const CROWD: usize = 16;
const LOCKS: usize = 10_000;

/// The times of pairs, by client.
#[derive(Default)]
struct Times {
    blocking: Samples,
    asynchronous: Samples,
    redis: Samples,
    postgres: Samples,
}

/// Measure the time of a pair with one client and one lock.
pub(crate) fn one_client(extent: Extent, servers: &Servers, table: &mut Table) {
    let Servers { placement, ours, redis, postgres } = servers;
    let (placement, turn) = (*placement, extent.turn);
    let (mut times, mut least) = (Times::default(), Samples::default());
    for round in 1..=extent.rounds {
        progress(&format!("one client, {placement}, {round} of {}", extent.rounds));
        least.extend(bare::round_trips(turn, placement));
        times.blocking.extend(blocking(turn, placement, ours.address(), 1, 1));
        let work = async move |address: &str| alone::<Doorway>(turn, address).await;
        times.asynchronous.extend(clients(placement, ours.address(), work));
        if let Some(server) = redis {
            let work = async move |address: &str| alone::<Redis>(turn, address).await;
            times.redis.extend(clients(placement, server.socket(), work));
        }
        if let Some(server) = postgres {
            let work = async move |address: &str| alone::<Postgres>(turn, address).await;
            times.postgres.extend(clients(placement, server.socket(), work));
        }
    }
    let (beside, bare) = (times.beside(Samples::median), least.median());
    table.add(Row::of("two bare round trips through a Unix socket").at(placement).times(least));
    for (what, times) in times.theirs() {
        table.add(Row::of(&format!("acquire + release, {what}")).at(placement).times(times));
    }
    for (what, times) in times.ours() {
        let median = times.median();
        let row = Row::of(&format!("acquire + release, {what}")).at(placement).times(times);
        let row = row.ratio("bare", median / bare);
        table.add(beside.judge(row, median, "0.6 x both", |ratio| ratio <= 0.6));
    }
}

/// Measure the pairs per second of many clients that rarely want the same lock.
pub(crate) fn many_clients(extent: Extent, servers: &Servers, table: &mut Table) {
    let Servers { placement, ours, redis, postgres } = servers;
    let (placement, turn) = (*placement, extent.turn);
    let mut times = Times::default();
    for round in 1..=extent.rounds {
        progress(&format!("{CROWD} clients, {placement}, {round} of {}", extent.rounds));
        times.blocking.extend(blocking(turn, placement, ours.address(), CROWD, LOCKS));
        let work = async move |address: &str| many::<Doorway>(turn, address, CROWD, LOCKS).await;
        times.asynchronous.extend(clients(placement, ours.address(), work));
        if let Some(server) = redis {
            let work = async move |address: &str| many::<Redis>(turn, address, CROWD, LOCKS).await;
            times.redis.extend(clients(placement, server.socket(), work));
        }
        if let Some(server) = postgres {
            let work =
                async move |address: &str| many::<Postgres>(turn, address, CROWD, LOCKS).await;
            times.postgres.extend(clients(placement, server.socket(), work));
        }
    }
    let seconds = turn.as_secs_f64() * extent.rounds as f64;
    let rate = |times: &Samples| times.count() as f64 / seconds;
    let beside = times.beside(rate);
    let row = |what: &str, times: Samples| {
        let row = Row::of(&format!("{CROWD} clients, {LOCKS} locks, {what}")).at(placement);
        row.per_second(rate(&times)).times(times)
    };
    for (what, times) in times.theirs() {
        table.add(row(what, times));
    }
    for (what, times) in times.ours() {
        let ours = rate(&times);
        table.add(beside.judge(row(what, times), ours, "above both", |ratio| ratio > 1.0));
    }
}

impl Times {
    fn beside(&self, figure: impl Fn(&Samples) -> f64) -> RivalFigures {
        let figure = |times: &Samples| (times.count() > 0).then(|| figure(times));
        RivalFigures { redis: figure(&self.redis), postgres: figure(&self.postgres) }
    }

    /// The times of other programs, as far as they were measured.
    fn theirs(&mut self) -> impl Iterator<Item = (&'static str, Samples)> {
        let [redis, postgres] = [&mut self.redis, &mut self.postgres].map(std::mem::take);
        let both = [("Redis, Unix socket", redis), ("PostgreSQL, Unix socket", postgres)];
        both.into_iter().filter(|(_, times)| times.count() > 0)
    }

    fn ours(self) -> [(&'static str, Samples); 2] {
        let Self { blocking, asynchronous, .. } = self;
        [("blocking client, Unix socket", blocking), ("async client, Unix socket", asynchronous)]
    }
}

/// Pairs of blocking clients, each on a thread of its own.
fn blocking(
    turn: Duration,
    placement: Placement,
    address: &str,
    clients: usize,
    locks: usize,
) -> Samples {
    let endpoint = ours::endpoint(address);
    // Background threads of a client run on the core on which they start.
    let connected = placement.spawn(0, move |_| {
        (0..clients).map(|number| (number, ours::blocking(&endpoint, number))).collect::<Vec<_>>()
    });
    let connected = connected.join().unwrap();
    let begun = Instant::now();
    let work = |(number, client): (usize, Client)| {
        placement.spawn(0, move |_| {
            let mut samples = Samples::default();
            for lock in scattered(number, locks) {
                let asked = Instant::now();
                if asked - begun > turn {
                    break;
                }
                client.acquire(&ours::name(lock)).enter().unwrap().release().unwrap();
                samples.push(asked.elapsed());
            }
            samples
        })
    };
    let threads: Vec<_> = connected.into_iter().map(work).collect();
    let mut samples = Samples::default();
    for thread in threads {
        samples.extend(thread.join().unwrap());
    }
    samples
}
