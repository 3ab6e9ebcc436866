//! Contention: clients of one node that all want the same lock.

use crate::Extent;
use crate::ours::Doorway;
use crate::servers::{Servers, clients};
use crate::shared::baton::Load;
use crate::shared::rivals::{Postgres, together};
use crate::shared::table::{Row, Table, progress};

/// How many clients compete.
const CROWD: usize = 8;

pub(crate) fn measure(extent: Extent, servers: &Servers, table: &mut Table) {
    let Servers { placement, ours, postgres, .. } = servers;
    let (placement, turn) = (*placement, 2 * extent.turn);
    let (mut mine, mut theirs) = (Load::default(), None::<Load>);
    for round in 1..=extent.rounds {
        progress(&format!(
            "{CROWD} clients of one lock, {placement}, {round} of {}",
            extent.rounds
        ));
        let work = async move |address: &str| together::<Doorway>(turn, address, CROWD).await;
        mine.add(clients(placement, ours.address(), work));
        if let Some(server) = postgres {
            let work = async move |address: &str| together::<Postgres>(turn, address, CROWD).await;
            theirs.get_or_insert_default().add(clients(placement, server.socket(), work));
        }
    }
    let row = |what: &str, load: Load| {
        let row = Row::of(&format!("hand-over between {CROWD} clients, {what}, Unix socket"))
            .at(placement);
        row.fairness(load.fairness()).load(load)
    };
    let (rate, fair) = (mine.rate(), mine.fairness() >= 0.99);
    let goal = "3 x, Jain 0.99";
    let mut ours = row("Doorway", mine).goal(goal);
    if let Some(theirs) = theirs {
        let ratio = rate / theirs.rate();
        table.add(row("PostgreSQL", theirs));
        ours = ours.ratio("PostgreSQL", ratio).judged(goal, ratio >= 3.0 && fair);
    }
    table.add(ours);
}
