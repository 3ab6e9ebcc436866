//! What people use instead, on the same machine, in the same run and in the same placement.
//!
//! Each server runs from the binaries of the system, in a directory of its own, with the settings
//! it comes with. The clients speak their protocols with nothing in between, all as tasks of one
//! thread, which spares them wake-ups that our nodes, each on a thread of its own, have to pay.

mod etcd;
mod postgres;
mod redis;
mod server;

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::Extent;
use crate::baton::Baton;
use crate::handover::Load;
use crate::pin::Placement;
use crate::samples::Samples;
use crate::table::{Row, Table, progress};
use server::Server;

/// How many clients compete for one lock.
const CROWDS: [usize; 2] = [3, 8];

/// How long a server has until it answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client of a server, with a connection of its own.
trait Rival: Sized + 'static {
    const NAME: &str;

    /// Start the server; without a reason why not, it is not installed.
    fn serve(placement: Placement) -> Result<Server, String>;

    async fn connect(port: u16, number: usize) -> io::Result<Self>;

    async fn lock(&mut self) -> io::Result<()>;

    async fn unlock(&mut self) -> io::Result<()>;
}

pub(crate) fn measure(extent: Extent, placement: Placement, table: &mut Table) {
    rival::<postgres::Postgres>(extent, placement, table);
    rival::<redis::Redis>(extent, placement, table);
    rival::<etcd::Etcd>(extent, placement, table);
}

fn rival<R: Rival>(extent: Extent, placement: Placement, table: &mut Table) {
    progress(&format!("{}, {placement}", R::NAME));
    let server = match R::serve(placement) {
        Ok(server) => server,
        Err(why) => return table.note(format!("{}, {placement}: not measured, {why}.", R::NAME)),
    };
    let port = server.port();
    let clients = placement.spawn(0, move |runtime| {
        LocalSet::new().block_on(&runtime, async {
            let pairs = alone::<R>(extent, port).await?;
            let mut loads = Vec::new();
            for crowd in CROWDS {
                loads.push(
                    together::<R>(Extent { turn: 3 * extent.turn, ..extent }, port, crowd).await?,
                );
            }
            Ok::<_, io::Error>((pairs, loads))
        })
    });
    let (pairs, loads) = match clients.join().unwrap() {
        Ok(measured) => measured,
        Err(error) => return table.note(format!("{}, {placement}: {error}.", R::NAME)),
    };
    table.add(Row::of(&format!("{}, lock + unlock", R::NAME)).at(placement).times(pairs));
    for (load, crowd) in loads.into_iter().zip(CROWDS) {
        let row = Row::of(&format!("{}, hand-over between {crowd} clients", R::NAME));
        table.add(row.at(placement).load(load));
    }
}

/// A client, as soon as the server lets it in.
async fn patiently<R: Rival>(port: u16, number: usize) -> io::Result<R> {
    let begun = Instant::now();
    loop {
        match R::connect(port, number).await {
            Err(_) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
}

/// One client that meets nobody.
async fn alone<R: Rival>(extent: Extent, port: u16) -> io::Result<Samples> {
    let mut client = patiently::<R>(port, 0).await?;
    let mut samples = Samples::default();
    let begun = Instant::now();
    while begun.elapsed() < extent.turn {
        let asked = Instant::now();
        client.lock().await?;
        client.unlock().await?;
        samples.push(asked.elapsed());
    }
    Ok(samples)
}

/// Clients that all want the same lock all the time.
async fn together<R: Rival>(extent: Extent, port: u16, crowd: usize) -> io::Result<Load> {
    let mut clients = Vec::new();
    for number in 0..crowd {
        clients.push(patiently::<R>(port, number).await?);
    }
    let baton = Rc::new(Baton::new(extent.turn));
    let work = |(number, mut client): (usize, R)| {
        let baton = Rc::clone(&baton);
        tokio::task::spawn_local(async move {
            loop {
                client.lock().await?;
                baton.entered(number);
                baton.leaves();
                client.unlock().await?;
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
    Ok(Load::of(&baton, extent))
}
