//! Clients of other lock servers, one alone or several at once.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::server::Server;
use crate::shared::baton::{Baton, Load};
use crate::shared::pin::Placement;
use crate::shared::samples::Samples;

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client of a server, with a connection of its own. Locks have numbers.
pub(crate) trait Rival: Sized + 'static {
    const NAME: &str;

    /// Start the server; or why it cannot be started.
    fn serve(placement: Placement) -> Result<Server, String>;

    async fn connect(address: &str, number: usize) -> io::Result<Self>;

    async fn lock(&mut self, lock: usize) -> io::Result<()>;

    async fn unlock(&mut self, lock: usize) -> io::Result<()>;
}

/// A client, as soon as the server lets it in.
pub(crate) async fn patiently<R: Rival>(address: &str, number: usize) -> io::Result<R> {
    let begun = Instant::now();
    loop {
        match R::connect(address, number).await {
            Err(_) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
}

/// One client without contention.
pub(crate) async fn alone<R: Rival>(turn: Duration, address: &str) -> io::Result<Samples> {
    let mut client = patiently::<R>(address, 0).await?;
    let mut samples = Samples::default();
    let begun = Instant::now();
    while begun.elapsed() < turn {
        let asked = Instant::now();
        client.lock(0).await?;
        client.unlock(0).await?;
        samples.push(asked.elapsed());
    }
    Ok(samples)
}

async fn crowd<R: Rival>(address: &str, size: usize) -> io::Result<Vec<R>> {
    let mut clients = Vec::new();
    for number in 0..size {
        clients.push(patiently::<R>(address, number).await?);
    }
    Ok(clients)
}

/// Clients that all want the same lock all the time, as tasks of one thread.
pub(crate) async fn together<R: Rival>(
    turn: Duration,
    address: &str,
    size: usize,
) -> io::Result<Load> {
    let clients = crowd::<R>(address, size).await?;
    pass_around(
        clients,
        turn,
        async |client| client.lock(0).await,
        async |client| client.unlock(0).await,
    )
    .await
}

/// Let clients lock and unlock the same lock all the time, as tasks of one thread.
pub(crate) async fn pass_around<C: 'static>(
    clients: Vec<C>,
    turn: Duration,
    lock: impl AsyncFn(&mut C) -> io::Result<()> + Copy + 'static,
    unlock: impl AsyncFn(&mut C) -> io::Result<()> + Copy + 'static,
) -> io::Result<Load> {
    let baton = Rc::new(Baton::new(turn));
    let work = |(number, mut client): (usize, C)| {
        let baton = Rc::clone(&baton);
        tokio::task::spawn_local(async move {
            loop {
                lock(&mut client).await?;
                baton.entered(number);
                baton.leaves();
                unlock(&mut client).await?;
                if !baton.passed(number).await {
                    return io::Result::Ok(());
                }
            }
        })
    };
    let tasks: Vec<_> = clients.into_iter().enumerate().map(work).collect();
    for task in tasks {
        task.await??;
    }
    Ok(Load::of(&baton, turn))
}

/// Clients that use many locks, as tasks of one thread: the times of their pairs.
pub(crate) async fn many<R: Rival>(
    turn: Duration,
    address: &str,
    size: usize,
    locks: usize,
) -> io::Result<Samples> {
    let clients = crowd::<R>(address, size).await?;
    pairs(clients, Instant::now(), turn, locks).await
}

/// The times of pairs that these clients begin after `begin`, for the time of a turn.
pub(crate) async fn pairs<R: Rival>(
    clients: Vec<R>,
    begin: Instant,
    turn: Duration,
    locks: usize,
) -> io::Result<Samples> {
    let work = |(number, mut client): (usize, R)| {
        tokio::task::spawn_local(async move {
            let mut samples = Samples::default();
            for lock in scattered(number, locks) {
                let asked = Instant::now();
                if asked >= begin + turn {
                    break;
                }
                client.lock(lock).await?;
                client.unlock(lock).await?;
                if asked >= begin {
                    samples.push(asked.elapsed());
                }
            }
            io::Result::Ok(samples)
        })
    };
    let tasks: Vec<_> = clients.into_iter().enumerate().map(work).collect();
    let mut samples = Samples::default();
    for task in tasks {
        samples.extend(task.await??);
    }
    Ok(samples)
}

/// A pseudo-random sequence of locks, different for each client.
pub(crate) fn scattered(client: usize, locks: usize) -> impl Iterator<Item = usize> {
    (0_usize..).map(move |turn| (turn * 7919 + client * 613) % locks)
}
