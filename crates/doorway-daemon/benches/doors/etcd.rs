//! The lock service of etcd (`v3lock`) by gRPC, at etcd and at our door for etcd clients: pairs of
//! one client, clients that pass a lock around, and the CPU time that the server spends.

use std::io;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Request};
use h2::client::SendRequest;
use tokio::task::LocalSet;

use crate::pairs::{Pair, opened};
use crate::servers::Servers;
use crate::shared::baton::Load;
use crate::shared::pin::Placement;
use crate::shared::rivals::pass_around;
use crate::shared::samples::Samples;
use crate::shared::table::{Row, Table, progress};
use crate::wire::{Way, connect_http2};
use crate::{ETCD_DOOR, Extent, LOCK, TOKEN};

/// How many clients compete for one lock.
const CROWD: usize = 8;

/// The time to live of a lease, in seconds.
const TTL: u64 = 60;

/// A client with a lease.
pub(crate) struct Grpc {
    send: SendRequest<Bytes>,
    /// Whether calls show the token. etcd refuses one that it does not know.
    has_token: bool,
    lease: u64,
    /// The key of the lock that is held.
    key: Vec<u8>,
}

impl Pair for Grpc {
    async fn open(way: &Way) -> io::Result<Self> {
        let stream = connect_http2(way).await?;
        let (send, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
        tokio::task::spawn_local(async { drop(connection.await) });
        let has_token = matches!(way, Way::Tls(..));
        let mut client = Self { send, has_token, lease: 0, key: Vec::new() };
        let (grant, request) = ("etcdserverpb.Lease/LeaseGrant", [Field::Int(1, TTL)]);
        let granted = match client.call(grant, &request).await {
            Err(_) if has_token => {
                client.has_token = false;
                client.call(grant, &request).await?
            }
            done => done?,
        };
        client.lease = match field(&granted, 2) {
            Some(Field::Int(_, lease)) => lease,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(client)
    }

    async fn lock(&mut self) -> io::Result<()> {
        let request = [Field::Bytes(1, LOCK.as_bytes()), Field::Int(2, self.lease)];
        let held = self.call("v3lockpb.Lock/Lock", &request).await?;
        let Some(Field::Bytes(_, key)) = field(&held, 2) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        self.key = key.to_vec();
        Ok(())
    }

    async fn unlock(&mut self) -> io::Result<()> {
        let key = std::mem::take(&mut self.key);
        self.call("v3lockpb.Lock/Unlock", &[Field::Bytes(1, &key)]).await.map(drop)
    }
}

impl Grpc {
    /// Make a call with one message. Returns the message of the answer.
    async fn call(&mut self, path: &str, fields: &[Field<'_>]) -> io::Result<Vec<u8>> {
        let mut request = Request::post(format!("https://127.0.0.1/{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if self.has_token {
            request = request.header("authorization", TOKEN);
        }
        let request = request.body(()).map_err(io::Error::other)?;
        let message = encoded(fields);
        let mut body = vec![0];
        body.extend((message.len() as u32).to_be_bytes());
        body.extend(message);
        let mut send = self.send.clone().ready().await.map_err(io::Error::other)?;
        let (response, mut stream) = send.send_request(request, false).map_err(io::Error::other)?;
        stream.send_data(body.into(), true).map_err(io::Error::other)?;
        let (head, mut body) = response.await.map_err(io::Error::other)?.into_parts();
        let mut answer = Vec::new();
        while let Some(data) = body.data().await {
            let data = data.map_err(io::Error::other)?;
            let _ = body.flow_control().release_capacity(data.len());
            answer.extend(data);
        }
        let trailers = body.trailers().await.map_err(io::Error::other)?;
        succeeded(trailers.as_ref().unwrap_or(&head.headers))?;
        // One message, after a byte that says that it is not compressed, and its length.
        answer.drain(..5.min(answer.len()));
        Ok(answer)
    }
}

fn succeeded(end: &HeaderMap) -> io::Result<()> {
    match end.get("grpc-status").map(HeaderValue::as_bytes) {
        Some(b"0") => Ok(()),
        _ => Err(io::Error::other(format!("the call fails: {end:?}"))),
    }
}

/// A field of a message of Protocol Buffers, with its number.
enum Field<'a> {
    Int(u64, u64),
    Bytes(u64, &'a [u8]),
}

fn encoded(fields: &[Field<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        match field {
            Field::Int(number, value) => [number << 3, *value].map(|it| put(&mut bytes, it)),
            Field::Bytes(number, value) => {
                let done = [number << 3 | 2, value.len() as u64].map(|it| put(&mut bytes, it));
                bytes.extend(*value);
                done
            }
        };
    }
    bytes
}

/// Append a number, seven bits in each byte.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 127 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Take a number from the beginning.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 127) << shift;
        shift += 7;
        if first & 128 == 0 {
            return Some(number);
        }
    }
}

/// The field with this number.
fn field(mut bytes: &[u8], wanted: u64) -> Option<Field<'_>> {
    loop {
        let key = take(&mut bytes)?;
        let value = take(&mut bytes)?;
        // The last three bits say what the value is: here a number, or bytes with their length.
        let field = if key.trailing_zeros() >= 3 {
            Field::Int(key >> 3, value)
        } else {
            let (value, rest) = bytes.split_at_checked(value as usize)?;
            bytes = rest;
            Field::Bytes(key >> 3, value)
        };
        if key >> 3 == wanted {
            return Some(field);
        }
    }
}

/// Clients that all want the same lock all the time, as tasks of one thread.
async fn together(way: &Way, turn: Duration) -> io::Result<Load> {
    let mut clients = Vec::new();
    for _ in 0..CROWD {
        clients.push(opened::<Grpc>(way).await?);
    }
    pass_around(
        clients,
        turn,
        async |client| client.lock().await,
        async |client| client.unlock().await,
    )
    .await
}

/// What was measured at one server.
struct ServerMeasurement {
    what: &'static str,
    way: Way,
    server: u32,
    load: Load,
    /// The CPU time of the server for each pair of one client.
    cpu: Samples,
}

/// Measure how often clients pass a lock around, and the CPU time of the server. The time of a pair
/// is measured with all other doors.
pub(crate) fn measure(extent: Extent, placement: Placement, servers: &Servers, table: &mut Table) {
    let measured = |what, server, way: &Way| {
        let (way, load, cpu) = (way.clone(), Load::default(), Samples::NONE);
        ServerMeasurement { what, way, server, load, cpu }
    };
    let ways = |what, server, ways: &[Way]| -> Vec<ServerMeasurement> {
        ways.iter().map(|way| measured(what, server, way)).collect()
    };
    let theirs = servers.etcd.iter().flat_map(|etcd| ways("etcd", etcd.pid(), &etcd.ways));
    let ours = ways(ETCD_DOOR, servers.ours.pid(), &servers.ours.etcd);
    let mut all: Vec<ServerMeasurement> = theirs.chain(ours).collect();
    for round in 1..=extent.rounds {
        progress(&format!("etcd clients, {placement}, {round} of {}", extent.rounds));
        for it in &mut all {
            if let Err(why) = it.round(placement, extent.turn) {
                assert!(it.what == "etcd", "{}, {}: {why}", it.what, it.way.name());
                table.note(format!("etcd, {}, {placement}: not measured, {why}.", it.way.name()));
            }
        }
    }
    all.retain(|it| it.cpu.count() > 0);
    let beside: Vec<(&str, f64, f64)> = all
        .iter()
        .filter(|it| it.what == "etcd")
        .map(|it| (it.way.name(), it.load.rate(), it.cpu.median()))
        .collect();
    for ServerMeasurement { what, way, load, cpu, .. } in all {
        let (rate, spent) = (load.rate(), cpu.median());
        let theirs = beside.iter().find(|(over, ..)| *over == way.name() && what != "etcd");
        let name = format!("{what}, {}", way.name());
        let mut passed = Row::of(&format!("hand-over between {CROWD} clients, {name}"));
        passed = passed.at(placement).fairness(load.fairness()).load(load);
        let mut used = Row::of(&format!("server CPU of a pair, {name}")).at(placement).times(cpu);
        if let Some((_, their_rate, their_cpu)) = theirs {
            let (more, less) = (rate / their_rate, spent / their_cpu);
            passed = passed.ratio("etcd", more).judged("20 x etcd", more >= 20.0);
            used = used.ratio("etcd", less).judged("0.1 x etcd", less <= 0.1);
        }
        table.add(passed);
        table.add(used);
    }
}

impl ServerMeasurement {
    fn round(&mut self, placement: Placement, turn: Duration) -> io::Result<()> {
        let before = cpu(self.server)?;
        let pairs = crate::run::<Grpc>(placement, &self.way, turn)?.count();
        let spent = cpu(self.server)?.saturating_sub(before);
        let pairs = u32::try_from(pairs).unwrap_or(u32::MAX).max(1);
        self.cpu.push(spent / pairs);
        let way = self.way.clone();
        let thread = placement.spawn(0, move |runtime| {
            LocalSet::new().block_on(&runtime, async { together(&way, turn).await })
        });
        self.load.add(thread.join().unwrap()?);
        Ok(())
    }
}

/// How much CPU time the threads of a process have used, in its own code and in the kernel.
fn cpu(process: u32) -> io::Result<Duration> {
    let mut spent = Duration::ZERO;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // Nanoseconds; `stat` has hundredths of a second. A thread may have ended by now.
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
        spent += Duration::from_nanos(nanoseconds.unwrap_or_default());
    }
    Ok(spent)
}
