//! How much memory lock names take.

use doorway_node::{Config, Node};
use stats_alloc::Region;

use crate::shared::table::{Row, Table, progress};
use crate::{ALLOCATOR, Extent};

pub(crate) fn measure(extent: Extent, table: &mut Table) {
    progress("memory of many names");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let names = extent.names;
    let Config { keep_idle, .. } = Config::default();
    runtime.block_on(async {
        let row = Row::of(&format!("{names} idle names, of which {keep_idle} are kept"));
        table.add(row.bytes(idle(names, keep_idle).await).goal("150 bytes"));
        let row = Row::of(&format!("{names} idle names, all of them kept"));
        table.add(row.bytes(idle(names, names).await).goal("150 bytes"));
        let row = Row::of(&format!("{names} names, all of them held"));
        table.add(row.bytes(held(names).await).goal("400 bytes"));
    });
}

fn name(number: usize) -> String {
    format!("orders/{number:07}")
}

/// The bytes of each name after all were locked and unlocked.
async fn idle(names: usize, keep_idle: usize) -> f64 {
    let node = Node::start(Config { keep_idle, ..Config::default() }).await.unwrap();
    let region = Region::new(ALLOCATOR);
    for number in 0..names {
        drop(node.lock(&name(number)).await.unwrap());
    }
    bytes(&region) / names as f64
}

/// The bytes of each name while all are locked, the guards included.
async fn held(names: usize) -> f64 {
    let node = Node::alone();
    let region = Region::new(ALLOCATOR);
    let mut guards = Vec::with_capacity(names);
    for number in 0..names {
        guards.push(node.lock(&name(number)).await.unwrap());
    }
    bytes(&region) / names as f64
}

/// The bytes that are allocated now. Reallocated bytes are part of both sums.
fn bytes(region: &Region<'_, std::alloc::System>) -> f64 {
    let change = region.change();
    (change.bytes_allocated - change.bytes_deallocated) as f64
}
