//! How soon the next client enters after the process of a holder is killed.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::Extent;
use crate::ours::Doorway;
use crate::servers::{Servers, clients};
use crate::shared::pin::Placement;
use crate::shared::rivals::{Postgres, Rival, patiently};
use crate::shared::samples::Samples;
use crate::shared::table::{Row, Table, progress};

/// How long the waiting client is given to join the queue.
const QUEUED: Duration = Duration::from_millis(5);

pub(crate) fn measure(extent: Extent, servers: &Servers, table: &mut Table) {
    let Servers { placement, ours, postgres, .. } = servers;
    let (placement, kills) = (*placement, extent.kills);
    progress(&format!("holders that are killed, {placement}"));
    let work =
        async move |address: &str| measured::<Doorway>(placement, "doorway", address, kills).await;
    let mine = clients(placement, ours.address(), work);
    let what = "holder killed, next one in, Unix socket";
    let (median, mut row) = (mine.median(), Row::of(&format!("{what}, Doorway")));
    row = row.at(placement).times(mine);
    if let Some(server) = postgres {
        let work = async move |address: &str| {
            measured::<Postgres>(placement, "postgres", address, kills).await
        };
        let theirs = clients(placement, server.socket(), work);
        row = row.against("PostgreSQL", theirs.median());
        table.add(Row::of(&format!("{what}, PostgreSQL")).at(placement).times(theirs));
    }
    table.add(row.judged("5 ms", median <= 5e6));
}

/// The times from the signal to the entry of the waiting client.
async fn measured<R: Rival>(
    placement: Placement,
    kind: &str,
    address: &str,
    kills: usize,
) -> io::Result<Samples> {
    let mut waiter = patiently::<R>(address, 0).await?;
    let mut samples = Samples::default();
    for _ in 0..kills {
        let mut holder = Holder::start(placement, kind, address)?;
        let waiting = tokio::task::spawn_local(async move {
            waiter.lock(0).await?;
            io::Result::Ok((Instant::now(), waiter))
        });
        tokio::time::sleep(QUEUED).await;
        let begun = Instant::now();
        holder.0.kill()?;
        let (entered, back) = waiting.await??;
        samples.push(entered - begun);
        waiter = back;
        waiter.unlock(0).await?;
    }
    Ok(samples)
}

/// A process that holds the lock until it is killed, which happens at the latest when this value is
/// dropped.
struct Holder(Child);

impl Holder {
    fn start(placement: Placement, kind: &str, address: &str) -> io::Result<Self> {
        let mut command = placement.command(0);
        command.arg(std::env::current_exe()?).args(["--hold", kind, address]);
        let mut holder = Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
        let mut line = String::new();
        if let Some(output) = holder.0.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        if line.is_empty() { Err(io::Error::other("the holder has failed")) } else { Ok(holder) }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill(); // It may be dead already.
        let _ = self.0.wait();
    }
}

/// The main function of such a process.
pub(crate) fn hold<R: Rival>(address: &str) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        let mut client = patiently::<R>(address, 1).await.unwrap();
        client.lock(0).await.unwrap();
        println!("inside");
        io::stdout().flush().unwrap();
        std::future::pending::<()>().await;
    });
}
