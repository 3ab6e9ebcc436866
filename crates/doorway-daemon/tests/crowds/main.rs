//! Crowds: many sessions, many waiting requests, clients that do not read, and floods of garbage.
//! The service continues to serve another client all the time, and its memory is freed afterwards.
//!
//! The service is a process of its own, whose allocator counts.

#[path = "../common/mod.rs"]
mod common;

mod flood;
mod raw;
mod witness;

use std::alloc::System;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use common::daemon::Daemon;
use common::group::remote;
use common::{PATIENCE, addresses, until, until_async};
use doorway_client::{Client, Fence, Options};
use raw::{Raw, connections};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::task::JoinSet;
use witness::Witness;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Settings that open the doors for Redis and etcd clients, at the Unix socket, too.
const DOORS: &str = "[redis]\nlisten = \"127.0.0.1:0\"\n[etcd]\nlisten = \"127.0.0.1:0\"\n";

/// How many bytes may stay when a crowd is gone: tables that shrink late, buffers of the runtime.
const LEFT: u64 = 2 << 20;

/// How many bytes this process has allocated and not freed.
fn live_bytes() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.bytes_allocated as u64).saturating_sub(stats.bytes_deallocated as u64)
}

/// Wait until the service has no more bytes than before, and some.
fn comes_back(daemon: &Daemon, before: u64, what: &str, peak: u64) {
    let mut now = 0;
    until(&format!("the memory of {what} is freed"), || {
        now = daemon.memory();
        now <= before + LEFT
    });
    let resident = daemon.resident() >> 10;
    println!(
        "{what}: {} KiB before, {} KiB at most, {} KiB after; {resident} KiB resident",
        before >> 10,
        peak >> 10,
        now >> 10
    );
}

fn sessions(daemon: &Daemon) -> u64 {
    daemon.client().status().expect("a status").sessions
}

#[test]
fn ten_thousand_idle_sessions_do_not_disturb_others_and_leave_nothing() {
    let daemon = Daemon::alone("");
    let witness = Witness::start(&daemon);
    let before = daemon.memory();
    let wanted = connections(10_000);
    let crowd: Vec<Raw> = (0..wanted).map(|_| Raw::session(&daemon.socket, 60_000)).collect();
    let open = sessions(&daemon);
    assert!(open as usize >= wanted, "{open} sessions are open");
    let peak = daemon.memory();
    println!("{wanted} idle sessions: {} bytes each", (peak - before) / wanted as u64);
    witness.goes_on(50);
    drop(crowd);
    until("all are gone", || sessions(&daemon) <= 2);
    comes_back(&daemon, before, "idle sessions", peak);
    witness.goes_on(50);
    witness.stop();
}

/// A thousand clients with connections of their own wait for one lock, and each gets it in turn.
#[test]
fn a_thousand_clients_wait_for_one_lock_and_each_enters_in_turn() {
    let daemon = Daemon::alone("");
    let witness = Witness::start(&daemon);
    let before = daemon.memory();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let peak = runtime.block_on(thousand(&daemon));
    drop(runtime);
    until("all are gone", || sessions(&daemon) <= 2);
    comes_back(&daemon, before, "a thousand who wait", peak);
    witness.stop();
}

async fn thousand(daemon: &Daemon) -> u64 {
    let options = Options::default().ttl(PATIENCE).patience(PATIENCE);
    let holder = Client::connect(daemon.endpoint(), &options).await.expect("a session");
    let grant = holder.acquire("a").enter().await.expect("nobody else wants it");
    let inside = Arc::new(AtomicUsize::new(0));
    let mut crowd = JoinSet::new();
    for _ in 0..1000 {
        let client = Client::connect(daemon.endpoint(), &options).await.expect("a session");
        crowd.spawn(enter(client, Arc::clone(&inside)));
    }
    let waiting = async || holder.status().await.expect("a status").waiting;
    until_async("all wait", async || waiting().await == 1000).await;
    let peak = daemon.memory();
    let fence = grant.fence();
    let began = Instant::now();
    grant.release().await.expect("it was held");
    let mut fences = crowd.join_all().await;
    println!("a thousand entered within {:?}", began.elapsed());
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 1000, "everyone has a fence of its own");
    assert!(fences[0] > fence);
    peak
}

async fn enter(client: Client, inside: Arc<AtomicUsize>) -> Fence {
    let grant = client.acquire("a").enter().await.expect("everyone gets it");
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "someone else is inside");
    tokio::task::yield_now().await;
    inside.fetch_sub(1, Ordering::SeqCst);
    let fence = grant.fence();
    grant.release().await.expect("it was held");
    fence
}

/// Clients that ask much and read nothing: what is kept for them is bounded, and given back.
#[test]
fn clients_that_do_not_read_do_not_disturb_others_and_leave_nothing() {
    let daemon = Daemon::alone("");
    let witness = Witness::start(&daemon);
    let before = daemon.memory();
    let mut slow: Vec<Raw> = (0..100).map(|_| Raw::session(&daemon.socket, 1000)).collect();
    let mut peak = before;
    for _ in 0..20 {
        slow.iter_mut().for_each(Raw::ask_much);
        peak = peak.max(daemon.memory());
    }
    witness.goes_on(50);
    // A backlog of a connection is at most 1 MiB, what it has read and what it writes besides.
    assert!(peak < before + (100 << 21), "{peak} bytes are kept for those who do not read");
    until("their time is over", || sessions(&daemon) <= 2);
    drop(slow);
    comes_back(&daemon, before, "slow readers", peak);
    witness.stop();
}

/// Redis and etcd clients that ask much and read nothing: what is kept for them is bounded, too.
#[test]
fn clients_of_other_doors_that_do_not_read_do_not_disturb_others_and_leave_nothing() {
    let daemon = remote(DOORS);
    let witness = Witness::start(&daemon);
    let before = daemon.memory();
    let redis = format!("*2\r\n$4\r\nECHO\r\n$1000\r\n{}\r\n", "x".repeat(1000)).repeat(50);
    let gateway = flood::gateway("/v3/lease/leases", 2, "{}").repeat(500);
    let mut slow: Vec<(Raw, Vec<u8>)> = Vec::new();
    for _ in 0..30 {
        slow.push((Raw::begin(&daemon.socket, b""), redis.clone().into_bytes()));
        slow.push((Raw::begin(&daemon.socket, b""), gateway.clone()));
        slow.push((Raw::begin(&daemon.socket, flood::HTTP2), Vec::new()));
    }
    let mut peak = before;
    for round in 0..20 {
        for (raw, bytes) in &mut slow {
            if bytes.is_empty() {
                // The numbers of streams grow, with each call of a connection.
                let streams = (0..50).map(|call| 2 * (50 * round + call) + 1);
                let path = "/grpc.health.v1.Health/Check";
                let calls: Vec<u8> =
                    streams.flat_map(|stream| flood::grpc(stream, path, &[0; 5])).collect();
                raw.send_much(&calls);
            } else {
                raw.send_much(bytes);
            }
        }
        peak = peak.max(daemon.memory());
        witness.goes_on(1);
    }
    witness.goes_on(50);
    assert!(peak < before + (90 << 21), "{peak} bytes are kept for those who do not read");
    drop(slow);
    comes_back(&daemon, before, "slow readers at other doors", peak);
    witness.stop();
}

#[test]
fn floods_of_garbage_do_not_disturb_others_and_leave_nothing() {
    let [redis_at, etcd_at] = addresses(2).try_into().expect("two");
    let daemon =
        remote(&format!("[redis]\nlisten = \"{redis_at}\"\n[etcd]\nlisten = \"{etcd_at}\"\n"));
    let witness = Witness::start(&daemon);
    let before = daemon.memory();
    let (sessions_at, http_at) = daemon.tcp.clone().expect("it has both");
    let doors = [sessions_at.clone(), http_at, redis_at, etcd_at];
    let peak = std::thread::scope(|scope| {
        let mut floods = vec![scope.spawn(|| flood::unix(&daemon.socket, 2000))];
        floods.extend(doors.iter().map(|door| scope.spawn(|| flood::tcp(door, 500))));
        let mut peak = before;
        while floods.iter().any(|flood| !flood.is_finished()) {
            peak = peak.max(daemon.memory());
            witness.goes_on(1);
        }
        peak
    });
    witness.goes_on(50);
    let stays = flood::stay(&daemon, &doors, 300);
    witness.goes_on(50);
    drop(stays);
    comes_back(&daemon, before, "garbage", peak);
    // A correct client is still served, at each door.
    let mut redis = BufReader::new(raw::connect(&daemon.socket));
    redis.get_mut().write_all(b"*1\r\n$4\r\nPING\r\n").expect("it is taken");
    assert_eq!(redis.lines().next().expect("a reply").expect("a line"), "+PONG");
    let mut etcd = BufReader::new(raw::connect(&daemon.socket));
    etcd.get_mut().write_all(&flood::gateway("/v3/lease/grant", 9, "{\"TTL\":5}")).expect("taken");
    assert_eq!(etcd.lines().next().expect("a reply").expect("a line"), "HTTP/1.1 200 OK");
    let address =
        format!("tcp://{sessions_at}").parse::<doorway_client::Endpoint>().expect("an address");
    let remote = doorway_client::blocking::Client::connect(&address, &daemon.over_tcp());
    remote.expect("a session").acquire("b").enter().expect("a lock").release().expect("held");
    witness.stop();
}
