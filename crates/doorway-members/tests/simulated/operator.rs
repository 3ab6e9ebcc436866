//! What operators do to the group.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use doorway_node::Node;
use doorway_node::members::{Command, Seat, ViewStore as _};
use tokio::time::{sleep, timeout};

use super::host::Stage;
use super::machine::MachineClock;
use super::network::{address, name};

/// How long an operator waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// An operator, with a machine of its own.
#[derive(Clone)]
pub(crate) struct Operator {
    pub(crate) stage: Arc<Stage>,
    pub(crate) clock: MachineClock,
}

impl Operator {
    /// Do everything that the plan says. This does not end.
    pub(crate) async fn work(self) -> Result<Infallible, String> {
        let plan = &self.stage.plan;
        if let Some((comes, goes)) = plan.guest {
            let operator = self.clone();
            tokio::spawn(async move {
                sleep(comes).await;
                operator.change_guest(true).await;
                sleep(goes.saturating_sub(comes)).await;
                operator.change_guest(false).await;
            });
        }
        if let Some(when) = plan.other_lease {
            let operator = self.clone();
            let lease = Command::Lease(plan.next_lease().as_millis() as u32);
            tokio::spawn(async move {
                sleep(when).await;
                operator.command(lease).await;
            });
        }
        if let Some(when) = plan.breaks {
            sleep(when).await;
            self.break_closed().await;
        }
        loop {
            sleep(Duration::from_millis(500)).await;
            if self.stage.is_calm() {
                self.break_closed().await;
            }
        }
    }

    /// Let the group agree on a command, through any machine that answers.
    async fn command(&self, command: Command) {
        loop {
            let stores: Vec<_> = {
                let now = self.stage.now.lock();
                // The guest may not belong to the group, and then it is refused everything.
                let members = now.nodes.iter().take(self.stage.plan.seats).flatten();
                members.map(|(_, store)| Arc::clone(store)).collect()
            };
            for store in stores {
                if let Ok(Ok(answer)) = timeout(PATIENCE, store.put(command.clone())).await {
                    self.stage.note(self.clock.elapsed(), format_args!("{command:?}: {answer:?}"));
                    // A command that was not answered may have been applied; then it is refused
                    // now.
                    return;
                }
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Add the last machine to the group, or drop it.
    async fn change_guest(&self, comes: bool) {
        let guest = self.stage.plan.seats;
        let seat = self.stage.now.lock().nodes[guest].as_ref().map(|(_, store)| store.seat());
        let id = seat.expect("a guest is not killed");
        let seat = Seat { id, name: name(guest), address: address(guest), voter: false };
        self.command(if comes { Command::AddSeat(seat) } else { Command::DropSeat(id) }).await;
    }

    /// Break all locks that are closed without end. From then on their clients do not use them.
    async fn break_closed(&self) {
        let nodes: Vec<Node> = {
            let now = self.stage.now.lock();
            now.nodes.iter().flatten().map(|(node, _)| node.clone()).collect()
        };
        for node in nodes {
            for closed in node.closed_locks().into_iter().filter(|closed| closed.left.is_none()) {
                let (lock, fence) = (closed.lock, closed.fence);
                self.stage.now.lock().referee.break_lock(lock.as_str(), fence);
                let broken = timeout(PATIENCE, node.break_closed(&lock, fence)).await;
                let what = format_args!("an operator breaks {lock} with {fence}: {broken:?}");
                self.stage.note(self.clock.elapsed(), what);
            }
        }
    }
}
