//! The servers that are compared in one placement, and their clients.

use std::io;

use tokio::task::LocalSet;

use crate::Extent;
use crate::ours::Doorway;
use crate::shared::pin::Placement;
use crate::shared::rivals::{Postgres, Redis, Rival, Server};
use crate::shared::table::{Row, Table, progress};

/// Our service and the other servers. A server is idle while another one is measured.
pub(crate) struct Servers {
    pub(crate) placement: Placement,
    pub(crate) ours: Server,
    pub(crate) redis: Option<Server>,
    pub(crate) postgres: Option<Server>,
}

impl Servers {
    pub(crate) fn start(extent: Extent, placement: Placement, table: &mut Table) -> Self {
        progress(&format!("servers, {placement}"));
        let ours = Doorway::serve(placement).unwrap();
        let redis = extent.rivals.then(|| rival::<Redis>(placement, table)).flatten();
        let postgres = extent.rivals.then(|| rival::<Postgres>(placement, table)).flatten();
        Self { placement, ours, redis, postgres }
    }
}

/// Another server, if it is installed.
fn rival<R: Rival>(placement: Placement, table: &mut Table) -> Option<Server> {
    let why = match R::serve(placement) {
        Ok(server) => return Some(server),
        Err(why) => why,
    };
    table.note(format!("{}, {placement}: not measured, {why}.", R::NAME));
    None
}

/// Run clients on a thread of their own.
pub(crate) fn clients<T: Send + 'static>(
    placement: Placement,
    address: &str,
    work: impl AsyncFnOnce(&str) -> io::Result<T> + Send + 'static,
) -> T {
    let address = address.to_owned();
    let thread = placement.spawn(0, move |runtime| {
        LocalSet::new().block_on(&runtime, async { work(&address).await })
    });
    thread.join().unwrap().unwrap()
}

/// A figure of the other programs for comparison, as far as they were measured.
#[derive(Clone, Copy, Default)]
pub(crate) struct RivalFigures {
    pub(crate) redis: Option<f64>,
    pub(crate) postgres: Option<f64>,
}

impl RivalFigures {
    /// Compare our figure with theirs, and judge whether each ratio is good.
    pub(crate) fn judge(self, row: Row, ours: f64, goal: &str, good: impl Fn(f64) -> bool) -> Row {
        let theirs = [("Redis", self.redis), ("PostgreSQL", self.postgres)];
        let known = theirs.into_iter().filter_map(|(name, theirs)| Some((name, theirs?)));
        let ratios: Vec<_> = known.map(|(name, theirs)| (name, ours / theirs)).collect();
        let met = ratios.iter().all(|(_, ratio)| good(*ratio));
        let alone = ratios.is_empty();
        let row = ratios.into_iter().fold(row, |row, (name, ratio)| row.ratio(name, ratio));
        if alone { row.goal(goal) } else { row.judged(goal, met) }
    }
}
