//! Other lock servers. Their clients are tasks of one thread, which spares them wake-ups that our
//! nodes, each on a thread of its own, have to pay for.

use std::io;

use tokio::task::LocalSet;

use crate::Extent;
use crate::shared::pin::Placement;
use crate::shared::rivals::{Etcd, Postgres, Redis, Rival, alone, together};
use crate::shared::table::{Row, Table, progress};

/// How many clients compete for one lock.
const CROWDS: [usize; 2] = [3, 8];

pub(crate) fn measure(extent: Extent, placement: Placement, table: &mut Table) {
    rival::<Postgres>(extent, placement, table);
    rival::<Redis>(extent, placement, table);
    rival::<Etcd>(extent, placement, table);
}

fn rival<R: Rival>(extent: Extent, placement: Placement, table: &mut Table) {
    progress(&format!("{}, {placement}", R::NAME));
    let server = match R::serve(placement) {
        Ok(server) => server,
        Err(why) => return table.note(format!("{}, {placement}: not measured, {why}.", R::NAME)),
    };
    let address = server.address().to_owned();
    let clients = placement.spawn(0, move |runtime| {
        LocalSet::new().block_on(&runtime, async {
            let pairs = alone::<R>(extent.turn, &address).await?;
            let mut loads = Vec::new();
            for crowd in CROWDS {
                loads.push(together::<R>(3 * extent.turn, &address, crowd).await?);
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
