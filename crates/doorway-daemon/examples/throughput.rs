//! What a pair of acquire and release costs through a Unix socket, by the threads of the service:
//! `cargo run --release -p doorway-daemon --example throughput -- THREADS CLIENTS [LOCKS]`, where 0
//! threads mean a runtime of one thread.

use std::error::Error;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

use doorway_daemon::listen::{Doors, accept_unix, bind_unix};
use doorway_daemon::service::Service;
use doorway_daemon::settings::{Limits, Settings, Socket};
use doorway_node::Config;
use doorway_protocol::{
    Ask, Frames, Greeting, Hello, Life, MAGIC, Mode, Name, Opening, Reply, Request, Scope,
    VERSIONS, Wait, WhoAmI, put,
};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let numbers: Vec<usize> =
        std::env::args().skip(1).map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let [threads, clients, rest @ ..] = numbers.as_slice() else {
        return Err("usage: throughput THREADS CLIENTS [LOCKS]".into());
    };
    let (threads, locks) = (*threads, rest.first().copied().unwrap_or(10_000));
    let name = format!("doorway-throughput-{}", std::process::id());
    let server = name.clone();
    std::thread::spawn(move || serve(&server, threads));
    while connect(&name).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let workers: Vec<_> = (0..*clients)
        .map(|index| {
            let name = name.clone();
            std::thread::spawn(move || work(&name, index, locks))
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.join().map_err(|_| "a client has failed")??);
    }
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!(
        "{threads} threads, {clients} clients, {locks} locks: {} pairs/s, p50 {:?}, p99 {:?}",
        times.len() as u64 / 2,
        at(50),
        at(99)
    );
    Ok(())
}

fn serve(name: &str, threads: usize) -> Result<(), Failure> {
    let mut runtime = match threads {
        0 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(threads.max(1)).enable_all().build()?;
    runtime.block_on(async {
        let settings = Settings {
            node: Config { algorithm: "readers-writers".into(), ..Config::default() },
            scope: Scope::User,
            socket: None,
            sessions: None,
            http: None,
            hosts: Vec::new(),
            clients: Vec::new(),
            tls: None,
            limits: Limits::default(),
            drain: Duration::ZERO,
            idle_stop: None,
        };
        let listener = bind_unix(&Socket::Abstract(name.to_owned()))?;
        let service = Service::start(&settings, None).await?;
        accept_unix(service, listener, Doors::default()).await;
        Ok(())
    })
}

fn connect(name: &str) -> std::io::Result<UnixStream> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Two seconds of pairs, after some to warm up: how long each took.
fn work(name: &str, index: usize, locks: usize) -> Result<Vec<Duration>, Failure> {
    let (mut stream, mut frames) = (connect(name)?, Frames::default());
    let opening = Opening::New { ttl_ms: 60_000, life: Life::Connection { inherited: false } };
    let hello = Hello { versions: VERSIONS, who: WhoAmI::default(), token: None, opening };
    let mut bytes = MAGIC.to_vec();
    put(&hello, &mut bytes);
    let _: Greeting = talk(&mut stream, &mut frames, &mut bytes)?;
    let names: Result<Vec<_>, _> =
        (0..locks).map(|lock| Name::new(&format!("lock-{lock}"))).collect();
    let names = names?;
    let (mut times, began) = (Vec::with_capacity(1 << 20), Instant::now());
    for number in 0.. {
        let lock = &names[(number as usize * 7919 + index * 613) % locks];
        let start = Instant::now();
        let ask =
            Ask { lock: lock.clone(), mode: Mode::Exclusive, permits: None, wait: Wait::Forever };
        put(&Request::Acquire(2 * number, ask), &mut bytes);
        let Reply::Granted(_, fence) = talk(&mut stream, &mut frames, &mut bytes)? else {
            return Err("not granted".into());
        };
        put(&Request::Release(2 * number + 1, lock.clone(), fence), &mut bytes);
        let _: Reply = talk(&mut stream, &mut frames, &mut bytes)?;
        let since = began.elapsed();
        if since > Duration::from_millis(2200) {
            break;
        }
        if since > Duration::from_millis(200) {
            times.push(start.elapsed());
        }
    }
    Ok(times)
}

/// Write what there is, and read one frame.
fn talk<T: serde::de::DeserializeOwned>(
    stream: &mut UnixStream,
    frames: &mut Frames,
    bytes: &mut Vec<u8>,
) -> Result<T, Failure> {
    stream.write_all(bytes)?;
    bytes.clear();
    let mut buffer = [0; 512];
    loop {
        if let Some(value) = frames.take()? {
            return Ok(value);
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err("the connection has ended".into());
        }
        frames.feed(&buffer[..count]);
    }
}
