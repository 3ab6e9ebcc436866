//! A simulation from its beginning to its end.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::Command;
use turmoil::{Builder, Sim};

use super::host::{Stage, command, guest, live, name};
use super::plan::{Clients, Fault, FaultKind, LEASE, Plan};

/// The step of the simulation's time.
const TICK: Duration = Duration::from_millis(5);

/// How long all clients may take to finish after the last fault.
const PATIENCE: Duration = Duration::from_mins(1);

/// Run the simulation of a seed. Returns what should not have happened.
pub(crate) fn run(seed: u64) -> Result<(), String> {
    let stage = Arc::new(Stage::new(Plan::new(seed)));
    let ran = simulate(&stage);
    let now = stage.now.lock();
    let wrong = match (ran, now.referee.faults.first()) {
        (Err(error), _) => error,
        (_, Some(fault)) => fault.clone(),
        _ if !now.finished.iter().all(|finished| *finished) => {
            format!("not all have finished: {:?}; inside: {:?}", now.finished, now.referee.held())
        }
        _ => {
            let referee = &now.referee;
            let (entries, losses, reclaimed) = (referee.entries, referee.losses, referee.reclaimed);
            println!("seed {seed}: {entries} entries, {losses} losses, {reclaimed} reclaimed");
            return Ok(());
        }
    };
    let last = now.trace.len().saturating_sub(80);
    Err(format!("{wrong}\nThe last that happened:\n{}", now.trace[last..].join("\n")))
}

fn simulate(stage: &Arc<Stage>) -> Result<(), String> {
    let plan = &stage.plan;
    let mut builder = Builder::new();
    builder.rng_seed(plan.seed).enable_random_order().tick_duration(TICK);
    builder.max_message_latency(Duration::from_millis(20));
    builder.simulation_duration(Duration::from_hours(1));
    let mut sim = builder.build();
    for node in 0..plan.size() {
        let stage = Arc::clone(stage);
        sim.host(name(node), move || live(Arc::clone(&stage), node));
    }
    if let Some((comes, goes)) = plan.guest {
        let shared = Arc::clone(stage);
        sim.client("operator", async move {
            tokio::time::sleep(comes).await;
            guest(Arc::clone(&shared), true).await;
            tokio::time::sleep(goes.saturating_sub(comes)).await;
            guest(shared, false).await;
            Ok(())
        });
    }
    if let Some(when) = plan.other_lease {
        let shared = Arc::clone(stage);
        sim.client("lessor", async move {
            tokio::time::sleep(when).await;
            command(&shared, Command::Lease(LEASE.as_millis() as u32 * 3 / 2)).await;
            Ok(())
        });
    }
    let calm = plan.calm();
    while !stage.is_over() {
        let now = sim.elapsed();
        for fault in &plan.faults {
            if fault.from == now {
                begin(&mut sim, stage, fault);
            }
            if fault.to == now {
                end(&mut sim, stage, fault);
            }
        }
        if now >= calm {
            stage.now.lock().calm = true;
        }
        if now > calm + PATIENCE {
            break;
        }
        sim.step().map_err(|error| error.to_string())?;
    }
    // Guards must go before the runtime of their node does.
    let nodes = std::mem::take(&mut stage.now.lock().nodes);
    drop(sim);
    drop(nodes);
    Ok(())
}

fn others(stage: &Stage, node: usize) -> impl Iterator<Item = usize> + use<> {
    (0..stage.plan.size()).filter(move |other| *other != node)
}

fn begin(sim: &mut Sim<'_>, stage: &Stage, fault: &Fault) {
    let time = fault.from.as_millis();
    let what = format!("{time} {:?} until {:?}", fault.what, fault.to);
    stage.now.lock().trace.push(what);
    match fault.what {
        FaultKind::Cut(one, two) => sim.partition(name(one), name(two)),
        FaultKind::CutOneWay(one, two) => sim.partition_oneway(name(one), name(two)),
        FaultKind::Hold(one, two) => sim.hold(name(one), name(two)),
        FaultKind::Alone(node) => {
            others(stage, node).for_each(|other| sim.partition(name(node), name(other)));
        }
        FaultKind::SlowDisk(node, millis) => {
            stage.disks[node].set_delay(Duration::from_millis(millis));
        }
        FaultKind::FullDisk(node) => stage.disks[node].set_full(true),
        FaultKind::Kill(node, clients) => {
            others(stage, node).for_each(|other| sim.partition(name(node), name(other)));
            let process = stage.now.lock().nodes[node].take();
            stage.now.lock().referee.killed(node, clients == Clients::LiveOn);
            stage.disks[node].lose_power();
            sim.crash(name(node));
            drop(process);
            others(stage, node).for_each(|other| sim.repair(name(node), name(other)));
        }
    }
}

fn end(sim: &mut Sim<'_>, stage: &Stage, fault: &Fault) {
    match fault.what {
        FaultKind::Cut(one, two) => sim.repair(name(one), name(two)),
        FaultKind::CutOneWay(one, two) => sim.repair_oneway(name(one), name(two)),
        FaultKind::Hold(one, two) => sim.release(name(one), name(two)),
        FaultKind::Alone(node) => {
            others(stage, node).for_each(|other| sim.repair(name(node), name(other)));
        }
        FaultKind::SlowDisk(node, _) => stage.disks[node].set_delay(Duration::ZERO),
        FaultKind::FullDisk(node) => stage.disks[node].set_full(false),
        FaultKind::Kill(node, _) => sim.bounce(name(node)),
    }
}
