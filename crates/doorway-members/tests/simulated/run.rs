//! A simulation from its beginning to its end.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::Record;

use super::host::{Host, Stage};
use super::machine::Machine;
use super::operator::Operator;
use super::plan::{Clients, Dice, Fault, FaultKind, Plan};
use super::referee::Referee;

/// The step of the simulation's time.
const TICK: Duration = Duration::from_millis(5);

/// How long all clients may take to finish after the last fault.
const PATIENCE: Duration = Duration::from_mins(2);

/// Run the simulation of a seed. Returns what should not have happened.
pub(crate) fn run(seed: u64) -> Result<(), String> {
    let stage = Arc::new(Stage::new(Plan::new(seed)));
    let ran = simulate(&stage);
    let now = stage.now.lock();
    let referee = &now.referee;
    let judged = ran.and_then(|recovery| {
        if let Some(fault) = referee.faults.first() {
            return Err(fault.clone());
        }
        if !now.finished.iter().all(|finished| *finished) {
            let (finished, held) = (&now.finished, referee.held());
            return Err(format!("not all have finished: {finished:?}; inside: {held:?}"));
        }
        let record = referee.newest_record().ok_or("no node knows a record")?;
        check_record(&stage.plan, record)?;
        let end = stage.plan.calm() + recovery;
        referee.answers.check(record, end.saturating_sub(stage.plan.lease))?;
        Ok(recovery)
    });
    let recovery = judged.map_err(|wrong| {
        let last = now.trace.len().saturating_sub(80);
        format!("{wrong}\nThe last that happened:\n{}", now.trace[last..].join("\n"))
    })?;
    let Referee { entries, losses, reclaimed, holds, believers, breaks, answers, .. } = referee;
    let answers = answers.len();
    println!(
        "seed {seed}: {answers} answers, {entries} entries, {losses} losses, {reclaimed} \
         reclaimed, {holds} holds, {believers} kept for absent nodes, {breaks} broken, all \
         finished after {} ms",
        recovery.as_millis()
    );
    Ok(())
}

/// What operators were told that the group has agreed on must be so in the end.
fn check_record(plan: &Plan, record: &Record) -> Result<(), String> {
    let lease = plan.other_lease.map_or(plan.lease, |_| plan.next_lease()).as_millis() as u32;
    if record.lease_ms != lease {
        return Err(format!("the lease is {} ms instead of {lease} ms", record.lease_ms));
    }
    if record.seats.len() != plan.seats {
        return Err(format!("there are {} seats instead of {}", record.seats.len(), plan.seats));
    }
    Ok(())
}

/// The machines of a simulation. The last one is that of the operator.
struct World<'a> {
    stage: &'a Arc<Stage>,
    machines: Vec<Machine>,
    now: Duration,
}

/// Run a simulation until all clients have finished, or have had the time for it. Returns how long
/// that took after the last fault.
fn simulate(stage: &Arc<Stage>) -> Result<Duration, String> {
    let plan = &stage.plan;
    let rates = plan.rates.iter().copied().chain([1000]);
    let machines = rates.map(Machine::new).collect();
    let mut world = World { stage, machines, now: Duration::ZERO };
    (0..plan.size()).for_each(|node| world.start(node));
    world.machines[plan.size()].start(Duration::ZERO, |clock| {
        Box::pin(Operator { stage: Arc::clone(stage), clock }.work())
    });
    let mut order: Vec<usize> = (0..world.machines.len()).collect();
    let mut dice = Dice::new(plan.seed ^ 1 << 62);
    let calm = plan.calm();
    while !stage.is_over() && world.now <= calm + PATIENCE {
        for fault in &plan.faults {
            if fault.from == world.now {
                world.begin(fault);
            }
            if fault.to == world.now {
                world.end(fault);
            }
        }
        if world.now >= calm {
            stage.now.lock().calm = true;
        }
        stage.network.deliver(world.now);
        world.now += TICK;
        for place in 1..order.len() {
            order.swap(place, dice.below(place as u64 + 1) as usize);
        }
        for machine in &order {
            world.machines[*machine].run_until(world.now)?;
        }
    }
    // Guards must go before the runtime of their node does.
    let nodes = std::mem::take(&mut stage.now.lock().nodes);
    let recovery = world.now.saturating_sub(calm);
    (0..plan.size()).for_each(|node| stage.network.kill(node));
    drop(world);
    drop(nodes);
    Ok(recovery)
}

impl World<'_> {
    /// Start the process of a node.
    fn start(&mut self, node: usize) {
        let (stage, port) = (Arc::clone(self.stage), self.stage.network.start(node));
        self.machines[node]
            .start(self.now, |clock| Box::pin(Host { stage, me: node, clock }.live(port)));
    }

    fn begin(&mut self, fault: &Fault) {
        let (stage, now) = (self.stage, self.now);
        stage.note(now, format_args!("{:?} until {} ms", fault.what, fault.to.as_millis()));
        for (from, to) in fault.what.cuts(stage.plan.size()) {
            stage.network.cut(from, to);
        }
        match fault.what {
            FaultKind::Hold(one, two) => {
                stage.network.hold_back(one, two);
                stage.network.hold_back(two, one);
            }
            FaultKind::SlowDisk(node, millis) => {
                stage.disks[node].set_delay(Duration::from_millis(millis));
            }
            FaultKind::FullDisk(node) => stage.disks[node].set_full(true),
            FaultKind::Pause(node) => self.machines[node].pause(),
            FaultKind::Kill(node, clients) => {
                stage.network.kill(node);
                let process = stage.now.lock().nodes[node].take();
                stage.now.lock().referee.killed(now, node, clients == Clients::LiveOn);
                stage.disks[node].lose_power();
                self.machines[node].kill();
                drop(process);
            }
            _ => {}
        }
    }

    fn end(&mut self, fault: &Fault) {
        let (stage, now) = (self.stage, self.now);
        for (from, to) in fault.what.cuts(stage.plan.size()) {
            stage.network.mend(from, to);
        }
        match fault.what {
            FaultKind::Hold(one, two) => {
                stage.network.let_go(one, two);
                stage.network.let_go(two, one);
            }
            FaultKind::SlowDisk(node, _) => stage.disks[node].set_delay(Duration::ZERO),
            FaultKind::FullDisk(node) => stage.disks[node].set_full(false),
            FaultKind::Pause(node) => self.machines[node].go_on(now),
            FaultKind::Kill(node, _) => self.start(node),
            _ => {}
        }
    }
}
