//! A simulation from its beginning to its end.

use std::sync::Arc;
use std::time::Duration;

use tracing::subscriber::{NoSubscriber, with_default};
use turmoil::{Builder, Sim};

use super::client::live;
use super::log::Log;
use super::plan::{Fault, FaultKind, Plan};
use super::stage::{Stage, name};

/// The step of the simulation's time.
const TICK: Duration = Duration::from_millis(1);

/// How long all clients may take to finish after the last fault.
const PATIENCE: Duration = Duration::from_secs(30);

/// Run the simulation of a seed. Returns the trace, or what should not have happened.
pub(crate) fn run(seed: u64) -> Result<Vec<String>, String> {
    let stage = Arc::new(Stage::new(Plan::new(seed)));
    with_default(Log(Arc::clone(&stage)), || simulate(&stage))?;
    stage.verdict()
}

fn simulate(stage: &Arc<Stage>) -> Result<(), String> {
    let plan = &stage.plan;
    let mut builder = Builder::new();
    builder.rng_seed(plan.seed).enable_random_order().tick_duration(TICK);
    builder.max_message_latency(plan.latency);
    let mut sim = builder.build();
    for node in 0..plan.size {
        let stage = Arc::clone(stage);
        sim.host(name(node), move || live(Arc::clone(&stage), node));
    }
    let calm = plan.calm();
    while (0..plan.size).any(|node| sim.is_host_running(name(node)) || !stage.is_over()) {
        let now = sim.elapsed();
        for fault in &plan.faults {
            if fault.from == now {
                begin(&mut sim, stage, fault);
            }
            if fault.to == now {
                end(&mut sim, stage, fault);
            }
        }
        if now == calm {
            stage.calm_down();
        }
        if now > calm + PATIENCE {
            break;
        }
        sim.step().map_err(|error| error.to_string())?;
    }
    unheard(|| drop(sim));
    Ok(())
}

/// Drop tasks without listening to their log: the order in which they are dropped depends on
/// numbers that are counted for the whole process.
fn unheard(drop: impl FnOnce()) {
    with_default(NoSubscriber::default(), drop);
}

fn begin(sim: &mut Sim<'_>, stage: &Stage, fault: &Fault) {
    stage.note(format_args!("{:?} {:?} until {:?}", fault.from, fault.what, fault.to));
    match fault.what {
        FaultKind::Cut(one, two) => sim.partition(name(one), name(two)),
        FaultKind::CutOneWay(one, two) => sim.partition_oneway(name(one), name(two)),
        FaultKind::Hold(one, two) => sim.hold(name(one), name(two)),
        FaultKind::Slow(one, two, latency) => {
            sim.set_link_max_message_latency(name(one), name(two), latency);
        }
        FaultKind::Stop(node) => stage.stop(node),
        FaultKind::PowerCut(node) => {
            let others = || (0..stage.plan.size).filter(|other| *other != node);
            others().for_each(|other| sim.partition(name(node), name(other)));
            unheard(|| sim.crash(name(node)));
            stage.gone(node);
            others().for_each(|other| sim.repair(name(node), name(other)));
        }
    }
}

fn end(sim: &mut Sim<'_>, stage: &Stage, fault: &Fault) {
    match fault.what {
        FaultKind::Cut(one, two) => sim.repair(name(one), name(two)),
        FaultKind::CutOneWay(one, two) => sim.repair_oneway(name(one), name(two)),
        FaultKind::Hold(one, two) => sim.release(name(one), name(two)),
        FaultKind::Slow(one, two, _) => {
            sim.set_link_max_message_latency(name(one), name(two), stage.plan.latency);
        }
        FaultKind::Stop(node) | FaultKind::PowerCut(node) => unheard(|| sim.bounce(name(node))),
    }
}
