//! Agrees on commands: reads the state, applies them, and writes it back if nobody was faster.
//!
//! One task does that for all commands of this node. Commands that come while it waits for etcd
//! go together into the next transaction. So they do not hinder each other.

use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{Answer, Command, UnknownOutcome};
use doorway_protocol::Backoff;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use super::core::{Attempt, Core};
use super::found::FOUNDING;
use super::layout::EtcdState;
use super::line::{CallError, Line};
use super::wire::{self, SwapAnswer};

/// How many commands one transaction has at most. etcd accepts 128 changes of keys in one, and a
/// command makes at most five besides that of the record.
const BATCH: usize = 20;

/// How many commands may wait.
const WAITING: usize = 256;

/// The bounds of the pause after two nodes have written at the same time, again and again.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

const TXN: &str = "/v3/kv/txn";

/// A command that waits.
struct Job {
    command: Command,
    deadline: Instant,
    answer: oneshot::Sender<Result<Answer, String>>,
}

/// The sending end of the queue of commands.
pub(super) struct Proposer {
    jobs: mpsc::Sender<Job>,
}

/// Start the task that agrees on commands.
pub(super) fn start(core: &Arc<Core>) -> Proposer {
    let (jobs, waiting) = mpsc::channel(WAITING);
    core.ending.spawn(Box::pin(run(Arc::clone(core), waiting)));
    Proposer { jobs }
}

impl Proposer {
    /// Agree on a command, in no more time than this.
    pub(super) async fn put(
        &self,
        command: Command,
        limit: Duration,
    ) -> Result<Answer, UnknownOutcome> {
        let deadline = Instant::now() + limit;
        let (answer, answered) = oneshot::channel();
        let job = Job { command, deadline, answer };
        let asked = async {
            let ended = || "the store has ended".to_owned();
            self.jobs.send(job).await.map_err(|_| ended())?;
            answered.await.unwrap_or_else(|_| Err(ended()))
        };
        let late = || Err(format!("no answer of etcd within {} ms", limit.as_millis()));
        timeout_at(deadline, asked).await.unwrap_or_else(|_| late()).map_err(UnknownOutcome)
    }
}

async fn run(core: Arc<Core>, mut jobs: mpsc::Receiver<Job>) {
    let mut line = Line::new(&core.access);
    while let Some(first) = jobs.recv().await {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(job) = jobs.try_recv()
        {
            batch.push(job);
        }
        // Nobody waits for the answer of a command that is late.
        batch.retain(|job| !job.answer.is_closed() && job.deadline > Instant::now());
        let Some(deadline) = batch.iter().map(|job| job.deadline).max() else { continue };
        let commands: Vec<&Command> = batch.iter().map(|job| &job.command).collect();
        match core.agree(&mut line, &commands, deadline).await {
            Ok(answers) => {
                for (job, answer) in batch.into_iter().zip(answers) {
                    let _ = job.answer.send(Ok(answer));
                }
            }
            Err(why) => {
                for job in batch {
                    let _ = job.answer.send(Err(why.clone()));
                }
            }
        }
    }
}

impl Core {
    /// Agree on commands. The error says why nobody knows whether they were applied.
    async fn agree(
        &self,
        line: &mut Line,
        commands: &[&Command],
        deadline: Instant,
    ) -> Result<Vec<Answer>, String> {
        let mut why = None;
        let mut pauses = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut outrun = false;
        loop {
            let Some((revision, old)) = self.newest() else {
                return Err(why.unwrap_or_else(|| "the group is not founded yet".to_owned()));
            };
            let mut new = EtcdState::clone(&old);
            let answers = commands.iter().map(|command| new.state.apply(command)).collect();
            let ops = self.keys.changes(Some(&old), &mut new);
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(why.unwrap_or_else(|| "there was no time left".to_owned()));
            }
            // If one server hangs, there is time for the next one.
            let share = if self.access.addresses.len() > 1 { 2 } else { 1 };
            let limit = left.min(self.timings().put() / share);
            // Without changes the comparison shows that the answers, mostly refusals, are right:
            // they do not come from an old state.
            let swap = wire::swap(&self.keys.record, revision, &ops);
            let swapped = line.call::<SwapAnswer>(TXN, &swap, limit).await;
            match self.took_place(swapped) {
                Ok(swapped) if swapped.succeeded => {
                    if !ops.is_empty() {
                        self.learn(swapped.header.revision, &Arc::new(new));
                    }
                    self.note(Attempt::Write, Ok(()));
                    return Ok(answers);
                }
                Ok(swapped) => {
                    let news = self.catch_up(line, revision, &old, swapped.current()).await;
                    self.note(Attempt::Write, news.as_ref().copied().map_err(String::as_str));
                    news?;
                    why = Some("other nodes were faster, again and again".to_owned());
                    // The state is new now, so the second attempt follows at once.
                    if outrun {
                        sleep(pauses.next_delay()).await;
                    }
                    outrun = true;
                }
                Err(error) => {
                    self.note(Attempt::Write, Err(&error.why));
                    if !error.not_sent {
                        return Err(error.why);
                    }
                    why = Some(error.why);
                    let pause = self.timings().heartbeat() / 2;
                    sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
                }
            }
        }
    }

    fn took_place(&self, swapped: Result<SwapAnswer, CallError>) -> Result<SwapAnswer, CallError> {
        let swapped = swapped?;
        match self.check_etcd(swapped.header) {
            Ok(()) => Ok(swapped),
            Err(why) => Err(CallError { not_sent: false, why }),
        }
    }

    /// Write the first state of a group, unless there is one already. The result is the state that
    /// etcd has then.
    pub(super) async fn create(&self, mut kept: EtcdState) -> Result<(), CallError> {
        let ops = self.keys.changes(None, &mut kept);
        let swap = wire::swap(&self.keys.record, 0, &ops);
        let mut line = Line::new(&self.access);
        let swapped = line.call::<SwapAnswer>(TXN, &swap, FOUNDING).await;
        let swapped = self.took_place(swapped)?;
        if swapped.succeeded {
            self.learn(swapped.header.revision, &Arc::new(kept));
            return Ok(());
        }
        // Another node was faster. It shows who has founded the group.
        let read = self.read(&mut line).await;
        read.map(drop).map_err(|why| CallError { not_sent: false, why })
    }
}
