//! The memory of the service per lock.

use std::time::Duration;

use crate::Extent;
use crate::ours::{self, Doorway};
use crate::shared::pin::Placement;
use crate::shared::rivals::{Rival as _, Server};
use crate::shared::table::{Row, Table, progress};

/// How long the service is given to return unused memory.
const SETTLED: Duration = Duration::from_millis(300);

pub(crate) fn measure(extent: Extent, table: &mut Table) {
    progress("memory of held locks");
    let locks = extent.held;
    let server = Doorway::serve(Placement::OneCore).unwrap();
    let client = ours::blocking(&ours::endpoint(server.address()), 0);
    // The first locks also cause allocations that later locks share.
    drop(client.acquire("first").enter().unwrap());
    let before = resident(&server);
    let acquire = |lock| client.acquire(&ours::name(lock)).enter().unwrap();
    let grants: Vec<_> = (0..locks).map(acquire).collect();
    let held = resident(&server);
    for grant in grants {
        grant.release().unwrap();
    }
    std::thread::sleep(SETTLED);
    let after = resident(&server);
    let each = |bytes: f64| (bytes - before) / locks as f64;
    let row = Row::of(&format!("{locks} locks held by one session")).bytes(each(held));
    // With few locks, a single page makes a difference.
    let fits = !extent.rivals || each(held) <= 500.0;
    table.add(row.judged("500 bytes", fits));
    let row = Row::of(&format!("{locks} locks, after their release")).bytes(each(after));
    table.add(row.goal("0 bytes"));
}

/// The resident memory of the process in bytes, without pages of files.
fn resident(server: &Server) -> f64 {
    let path = format!("/proc/{}/smaps_rollup", server.pid());
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().unwrap();
    kilobytes * 1024.0
}
