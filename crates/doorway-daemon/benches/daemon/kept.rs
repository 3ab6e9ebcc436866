//! Locks that a client keeps until another one wants them.

use std::io::{self, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doorway_client::{Client, Endpoint, Options, blocking};

use crate::Extent;
use crate::ours;
use crate::servers::{Servers, clients};
use crate::shared::pin::Placement;
use crate::shared::samples::Samples;
use crate::shared::table::{Row, Table, progress};

/// How many pairs are measured together. To read the clock takes a noticeable part of a pair.
const BATCH: u32 = 10;

/// How many pairs are made while bytes are counted.
const COUNTED: u32 = 500;

/// The lock of this part.
const LOCK: &str = "kept";

pub(crate) fn measure(extent: Extent, servers: &Servers, table: &mut Table) {
    let (placement, turn, address) = (servers.placement, extent.turn, servers.ours.address());
    drop(ours::blocking(&ours::endpoint(address), 0)); // It returns when the service is there.
    let (mut blocking, mut asynchronous) = (Samples::default(), Samples::default());
    let (mut usual, mut wanted) = (Samples::default(), Samples::default());
    for round in 1..=extent.rounds {
        progress(&format!("kept locks, {placement}, {round} of {}", extent.rounds));
        blocking.extend(reenter_blocking(turn, placement, address));
        asynchronous.extend(clients(placement, address, async move |address: &str| {
            reenter(turn, address).await
        }));
        usual.extend(clients(placement, address, async move |address: &str| {
            hand_over(turn, address, Options::default()).await
        }));
        wanted.extend(clients(placement, address, async move |address: &str| {
            hand_over(turn, address, Options::default().keep()).await
        }));
    }
    let bytes = bytes(&ours::endpoint(address));
    for (what, times) in [("blocking client", blocking), ("async client", asynchronous)] {
        let met = times.median() <= 1000.0 && bytes == 0;
        let row = Row::of(&format!("enter + release of a kept lock, {what}")).at(placement);
        let row = row.bytes(bytes as f64).times(times);
        table.add(row.judged("1 us, 0 bytes", met));
    }
    let before = usual.median();
    table.add(Row::of("hand-over to a client that waits").at(placement).times(usual));
    let ratio = wanted.median() / before;
    let row = Row::of("hand-over of a kept lock that is wanted").at(placement).times(wanted);
    table.add(row.ratio("hand-over", ratio).judged("2 x hand-over", ratio <= 2.0));
}

fn options() -> Options {
    Options::default().label("bench").keep()
}

/// Pairs of a blocking client that keeps its lock.
fn reenter_blocking(turn: Duration, placement: Placement, address: &str) -> Samples {
    let endpoint = ours::endpoint(address);
    let thread = placement.spawn(0, move |_| {
        let client = blocking::Client::connect(&endpoint, &options()).unwrap();
        let (begun, mut samples) = (Instant::now(), Samples::default());
        while begun.elapsed() < turn {
            let asked = Instant::now();
            for _ in 0..BATCH {
                client.acquire(LOCK).enter().unwrap().release().unwrap();
            }
            samples.push_each(asked.elapsed(), BATCH);
        }
        samples
    });
    thread.join().unwrap()
}

/// Pairs of an async client that keeps its lock.
async fn reenter(turn: Duration, address: &str) -> io::Result<Samples> {
    let client = connect(address, &options()).await?;
    let (begun, mut samples) = (Instant::now(), Samples::default());
    while begun.elapsed() < turn {
        let asked = Instant::now();
        for _ in 0..BATCH {
            let grant = client.acquire(LOCK).enter().await.map_err(io::Error::other)?;
            grant.release().await.map_err(io::Error::other)?;
        }
        samples.push_each(asked.elapsed(), BATCH);
    }
    Ok(samples)
}

/// The time from the moment in which a lock can be handed over to the entry of the other client.
/// That is the release, if the clients do not keep the lock, and otherwise the request.
async fn hand_over(turn: Duration, address: &str, options: Options) -> io::Result<Samples> {
    let mut pair = [connect(address, &options).await?, connect(address, &options).await?];
    let mut held = pair[0].acquire(LOCK).enter().await.map_err(io::Error::other)?;
    let (begun, mut samples) = (Instant::now(), Samples::default());
    while begun.elapsed() < turn {
        let next = pair[1].clone();
        let enter = async move { next.acquire(LOCK).enter().await };
        let (asked, entered);
        if options.keep {
            held.release().await.map_err(io::Error::other)?;
            asked = Instant::now();
            entered = enter.await;
        } else {
            let waiting = tokio::spawn(enter);
            while pair[0].inspect(LOCK).await.map_err(io::Error::other)?.waiters.is_empty() {}
            asked = Instant::now();
            drop(held);
            entered = waiting.await.map_err(io::Error::other)?;
        }
        samples.push(asked.elapsed());
        held = entered.map_err(io::Error::other)?;
        pair.swap(0, 1);
    }
    Ok(samples)
}

async fn connect(address: &str, options: &Options) -> io::Result<Client> {
    Client::connect(&ours::endpoint(address), options).await.map_err(io::Error::other)
}

/// How many bytes go over the connection for some pairs after the first one.
fn bytes(service: &Endpoint) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let relay = relay(service, &count);
    let client = blocking::Client::connect(&relay, &options()).unwrap();
    let pair = || client.acquire(LOCK).enter().unwrap().release().unwrap();
    pair();
    let before = count.load(Ordering::SeqCst);
    (0..COUNTED).for_each(|_| pair());
    count.load(Ordering::SeqCst) - before
}

/// An endpoint that leads one client to the service, and counts the bytes in both directions.
fn relay(service: &Endpoint, count: &Arc<AtomicU64>) -> Endpoint {
    let Endpoint::Abstract(service) = service.clone() else {
        panic!("the service has an abstract socket")
    };
    let name = format!("{service}-relay");
    let of = |name: &str| SocketAddr::from_abstract_name(name).unwrap();
    let (listener, service) = (UnixListener::bind_addr(&of(&name)).unwrap(), of(&service));
    let count = Arc::clone(count);
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let node = UnixStream::connect_addr(&service).unwrap();
        let back = (node.try_clone().unwrap(), client.try_clone().unwrap());
        let counted = Arc::clone(&count);
        thread::spawn(move || copy(back.0, back.1, &counted));
        copy(client, node, &count);
    });
    Endpoint::Abstract(name)
}

fn copy(mut from: UnixStream, mut to: UnixStream, count: &AtomicU64) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        count.fetch_add(read as u64, Ordering::SeqCst);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both); // It may have ended already.
}
