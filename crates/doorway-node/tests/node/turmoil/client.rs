//! A node of the simulation, and the clients that work there.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::{AcquireError, Node, OwnedGuard};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::network::SimulatedNetwork;
use super::plan::Dice;
use super::stage::Stage;

/// Run a node from one start to its end.
pub(crate) async fn live(stage: Arc<Stage>, me: usize) -> turmoil::Result {
    let start = stage.starts(me);
    let node = Node::start_on(SimulatedNetwork, stage.config(me, start)).await?;
    let mut clients = JoinSet::new();
    for number in 0..stage.plan.clients {
        let dice = Dice::new(stage.plan.seed ^ (me as u64 + 1) << 56 ^ start << 48 ^ number << 40);
        let client = Client { stage: Arc::clone(&stage), node: node.clone(), me, number, dice };
        clients.spawn(client.work());
    }
    tokio::select! {
        biased;
        () = stage.is_stopped(me) => {
            node.stop().await;
            while let Some(client) = clients.join_next().await {
                assert!(matches!(client?, Ok(()) | Err(AcquireError::Stopped)));
            }
        }
        worked = work(&stage, me, &node, &mut clients) => worked?,
    }
    Ok(())
}

/// Run the clients of a node to their end, and serve the other nodes as long as they work.
async fn work(
    stage: &Stage,
    me: usize,
    node: &Node,
    clients: &mut JoinSet<Result<(), AcquireError>>,
) -> turmoil::Result {
    while let Some(client) = clients.join_next().await {
        client??;
    }
    while node.counters().view.is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    stage.finish(me);
    // The others may still need this node.
    while !stage.is_over() {
        sleep(Duration::from_millis(5)).await;
    }
    stage.account(me, &node.counters());
    node.stop().await;
    Ok(())
}

struct Client {
    stage: Arc<Stage>,
    node: Node,
    me: usize,
    number: u64,
    dice: Dice,
}

impl Client {
    /// Acquire locks at random until no more faults come, and then every lock once more.
    async fn work(mut self) -> Result<(), AcquireError> {
        while !self.stage.is_calm() {
            sleep(self.dice.millis(0, 20)).await;
            self.try_something().await?;
        }
        for index in 0..self.stage.plan.names.len() {
            let name = self.stage.plan.names[index].clone();
            self.note("asks", &name);
            let guard = self.node.lock(&name).await?;
            self.stay_inside(vec![guard], false).await;
        }
        Ok(())
    }

    fn name(&mut self) -> String {
        let names = &self.stage.plan.names;
        names[self.dice.below(names.len() as u64) as usize].clone()
    }

    fn note(&self, what: &str, name: &str) {
        self.stage.note(format_args!("n{}/{} {what} {name}", self.me, self.number));
    }

    async fn try_something(&mut self) -> Result<(), AcquireError> {
        let name = self.name();
        let handle = self.node.open(&name)?;
        let shares = handle.serves_shared() && self.dice.below(2) == 0;
        let acquire = if shares { handle.lock_owned().shared() } else { handle.lock_owned() };
        let patience = self.dice.millis(0, 60);
        let kind = self.dice.below(16);
        self.note(["tries", "asks"][usize::from(kind > 0)], &name);
        let got = match kind {
            0 => handle.try_lock_owned().map(|guard| (Vec::from_iter(guard), false)),
            1 | 2 => acquire.within(patience).await.map(|guard| (vec![guard], shares)),
            3 | 4 => match timeout(patience, acquire).await {
                Ok(got) => got.map(|guard| (vec![guard], shares)),
                Err(_) => Ok((Vec::new(), shares)),
            },
            5 => {
                let other = self.name();
                self.note("asks, too, for", &other);
                self.node.lock_all(&[&name, &other]).await.map(|guards| (guards, false))
            }
            6 => {
                let why = handle.why().await;
                let heard = (why.holders.len(), why.waiters.len(), why.elsewhere.len());
                self.note(&format!("hears of {heard:?} at"), &name);
                Ok((Vec::new(), false))
            }
            _ => acquire.await.map(|guard| (vec![guard], shares)),
        };
        match got {
            Ok((guards, shares)) => self.stay_inside(guards, shares).await,
            Err(AcquireError::TimedOut) => self.note("gives up", &name),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Stay inside for a while, recorded by the referee.
    async fn stay_inside(&mut self, guards: Vec<OwnedGuard>, shares: bool) {
        for guard in &guards {
            self.stage.enter(self.me, guard, shares);
            self.note(
                &format!("is inside with {:?}", guard.fence()),
                guard.handle().name().as_str(),
            );
        }
        match self.dice.below(8) {
            0 => sleep(self.dice.millis(20, 200)).await, // Long enough to outlast a view.
            1..4 => sleep(self.dice.millis(0, 10)).await,
            _ => {}
        }
        for guard in guards {
            self.note("leaves", guard.handle().name().as_str());
            self.stage.leave(self.me, &guard);
            drop(guard);
        }
    }
}
