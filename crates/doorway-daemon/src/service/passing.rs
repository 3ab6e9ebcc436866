//! Calls that a door passes on to the service at another member, because what they are about is at
//! home there.
//!
//! A call names its door, which carries it out at the other member. The call and its answer are
//! texts that only this door reads. The member that passes a call on says
//! every second that its client still waits. If it says so no longer, the call is dropped, and with
//! it the request of a client that is gone. The answer comes as a message of its own, so a call may
//! wait for as long as its client does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorway_node::members::BoxedFuture;
use doorway_protocol::{Code, Refusal};
use doorway_sessions::refusals::refusal;
use hashbrown::HashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::group::Question;
use super::{PassedClient, Service};

/// How often a member says that the client of a call still waits.
const REMINDER: Duration = Duration::from_secs(1);

/// After this time without such a word the call is dropped, and without an answer to it the member
/// counts as away.
const SILENCE: Duration = Duration::from_secs(4);

/// How long a call waits until its member is connected.
const STARTING: Duration = Duration::from_secs(2);

/// How many calls of other members may wait at this node. At most half of them may be those of one
/// client.
const CALLS: usize = 20_000;

/// How many times the answer to a call is sent to a member that does not confirm it.
const ATTEMPTS: usize = 5;

/// What one service says to another about calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CallMessage {
    /// Begin this call of a client of mine. The answer is whether it has begun.
    Begin {
        from: String,
        ticket: u64,
        /// Members of earlier versions name none, and pass on the calls of one door only.
        #[serde(default)]
        door: CallDoor,
        /// The name of the client. Members of earlier versions do not tell it.
        #[serde(default)]
        client: String,
        call: String,
    },
    /// My client still waits. The answer is whether the call is known.
    Waits { from: String, ticket: u64 },
    /// My client waits no longer.
    Drop { from: String, ticket: u64 },
    /// The answer to a call of yours.
    Done { ticket: u64, answer: String },
}

/// A door whose calls may be passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CallDoor {
    #[default]
    Etcd,
    Redis,
}

impl CallDoor {
    /// What a node does not do if it does not carry out the calls of this door.
    fn service(self) -> &'static str {
        match self {
            Self::Etcd => "serve clients of etcd",
            Self::Redis => "serve Redis clients with `redlock`",
        }
    }
}

/// Carries out a call that another member has passed on.
pub(crate) type CallHandler = Arc<dyn Fn(String) -> BoxedFuture<'static, String> + Send + Sync>;

/// The calls of other members at this node, and those of this node at others.
#[derive(Default)]
pub(super) struct PassedCalls {
    carry_out: Mutex<BTreeMap<CallDoor, CallHandler>>,
    here: Mutex<HostedCalls>,
    awaited: Mutex<HashMap<u64, oneshot::Sender<String>, std::hash::RandomState>>,
    last: AtomicU64,
}

/// A call of another member.
struct HostedCall {
    client: String,
    heard: Instant,
    task: AbortHandle,
}

/// The calls of other members that wait at this node, by the member and its number of the call.
#[derive(Default)]
struct HostedCalls {
    calls: HashMap<(String, u64), HostedCall, std::hash::RandomState>,
    /// How many of them each client has.
    clients: HashMap<String, usize, std::hash::RandomState>,
}

impl HostedCalls {
    /// Whether this client may have one more call here.
    fn has_room(&self, client: &str) -> bool {
        // Those whose members do not name them cannot be told from each other.
        let own = self.clients.get(client).filter(|_| !client.is_empty());
        self.calls.len() < CALLS && own.is_none_or(|own| *own < CALLS / 2)
    }

    fn insert(&mut self, key: (String, u64), call: HostedCall) {
        *self.clients.entry(call.client.clone()).or_default() += 1;
        self.calls.insert(key, call);
    }

    fn remove(&mut self, key: &(String, u64)) -> Option<HostedCall> {
        let call = self.calls.remove(key)?;
        if let Some(own) = self.clients.get_mut(&call.client) {
            *own -= 1;
            if *own == 0 {
                self.clients.remove(&call.client);
            }
        }
        Some(call)
    }
}

/// A call that waits for its answer at another member. The other member is told if this is dropped
/// before.
struct AwaitedCall<'a> {
    service: &'a Service,
    node: &'a str,
    ticket: u64,
    answered: bool,
}

impl Drop for AwaitedCall<'_> {
    fn drop(&mut self) {
        let shell = &self.service.0;
        shell.passed.awaited.lock().remove(&self.ticket);
        if self.answered {
            return;
        }
        let from = shell.node.name().to_owned();
        let (service, node) = (self.service.clone(), self.node.to_owned());
        let gone = CallMessage::Drop { from, ticket: self.ticket };
        shell.runtime.spawn(async move { service.tell(&node, gone).await });
    }
}

impl Service {
    /// Carry out the calls of a door that other members pass on by this function.
    pub(crate) fn carry_out_by(&self, door: CallDoor, carry_out: CallHandler) {
        // If a service has a door twice, the first one counts.
        self.0.passed.carry_out.lock().entry(door).or_insert(carry_out);
    }

    /// Pass a call on to the same door of another member, and wait for its answer.
    pub(crate) async fn pass_on(
        &self,
        node: &str,
        door: CallDoor,
        client: &PassedClient,
        call: String,
    ) -> Result<String, Refusal> {
        self.connected_to(node).await;
        let passed = &self.0.passed;
        // Numbers of an earlier process of this node must not be used again.
        let first = || {
            u64::from_be_bytes(*doorway_sessions::secret::random().first_chunk().unwrap_or(&[1; 8]))
        };
        let _ = passed.last.compare_exchange(0, first(), Ordering::Relaxed, Ordering::Relaxed);
        let ticket = passed.last.fetch_add(1, Ordering::Relaxed);
        let (tell, mut answer) = oneshot::channel();
        passed.awaited.lock().insert(ticket, tell);
        let mut waiting = AwaitedCall { service: self, node, ticket, answered: false };
        let from = || self.0.node.name().to_owned();
        let client = client.name().to_owned();
        let what = CallMessage::Begin { from: from(), ticket, door, client, call };
        let begun = self.tell(node, what).await;
        if begun == Some(false) {
            let text = format!("the node {node} does not {}, or has no room", door.service());
            return Err(refusal(Code::Unavailable, text));
        }
        let mut heard = if begun.is_some() { Instant::now() } else { Instant::now() - SILENCE };
        loop {
            if heard.elapsed() >= SILENCE {
                return Err(away(node));
            }
            tokio::select! {
                biased;
                answer = &mut answer => {
                    waiting.answered = true;
                    return answer.map_err(|_| away(node));
                }
                () = sleep(REMINDER) => {}
            }
            match self.tell(node, CallMessage::Waits { from: from(), ticket }).await {
                Some(true) => heard = Instant::now(),
                // The answer may have come before the other member has forgotten the call.
                Some(false) => {
                    waiting.answered = true;
                    return answer.try_recv().map_err(|_| away(node));
                }
                None => {}
            }
        }
    }

    /// Wait for a while until a member is connected: it may be starting.
    async fn connected_to(&self, node: &str) {
        let mut changes = self.0.node.link_changes();
        let connected = async {
            while self.0.node.away().iter().any(|(name, _)| name == node) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = timeout(STARTING, connected).await;
    }

    /// Say something to the service at another member; `None` if it does not answer.
    async fn tell(&self, node: &str, what: CallMessage) -> Option<bool> {
        let question = serde_json::to_vec(&Question::Pass(what)).ok()?;
        let answer = self.0.node.ask_member(node, question).await?;
        serde_json::from_slice(&answer).ok()
    }

    /// Answer what the service at another member says. This must not wait.
    pub(super) fn hear(&self, what: CallMessage) -> bool {
        match what {
            CallMessage::Begin { from, ticket, door, client, call } => {
                self.begin_passed((from, ticket), door, client, call)
            }
            CallMessage::Waits { from, ticket } => {
                let mut here = self.0.passed.here.lock();
                let call = here.calls.get_mut(&(from, ticket));
                call.map(|call| call.heard = Instant::now()).is_some()
            }
            CallMessage::Drop { from, ticket } => {
                let dropped = self.0.passed.here.lock().remove(&(from, ticket));
                dropped.map(|call| call.task.abort()).is_some()
            }
            CallMessage::Done { ticket, answer } => {
                let awaited = self.0.passed.awaited.lock().remove(&ticket);
                awaited.is_some_and(|awaited| awaited.send(answer).is_ok())
            }
        }
    }

    fn begin_passed(
        &self,
        key: (String, u64),
        door: CallDoor,
        client: String,
        call: String,
    ) -> bool {
        let carry_out = self.0.passed.carry_out.lock().get(&door).cloned();
        let Some(carry_out) = carry_out else { return false };
        let mut here = self.0.passed.here.lock();
        if !here.has_room(&client) || here.calls.contains_key(&key) {
            return false;
        }
        let (service, own_key) = (self.clone(), key.clone());
        let task = self.0.runtime.spawn(async move {
            let answer = tokio::select! {
                answer = carry_out(call) => Some(answer),
                () = service.silent(&own_key) => None,
            };
            let Some(answer) = answer else { return };
            for _ in 0..ATTEMPTS {
                let done = CallMessage::Done { ticket: own_key.1, answer: answer.clone() };
                if service.tell(&own_key.0, done).await.is_some() {
                    break;
                }
            }
            service.0.passed.here.lock().remove(&own_key);
        });
        here.insert(key, HostedCall { client, heard: Instant::now(), task: task.abort_handle() });
        true
    }

    /// Wait until the member that has passed a call on was silent for too long, and forget the
    /// call.
    async fn silent(&self, key: &(String, u64)) {
        loop {
            let heard = self.0.passed.here.lock().calls.get(key).map(|call| call.heard);
            // A call that was removed meanwhile is in the table no more.
            let until = heard.unwrap_or_else(Instant::now) + SILENCE;
            if until <= Instant::now() {
                self.0.passed.here.lock().remove(key);
                return;
            }
            sleep_until(until).await;
        }
    }
}

fn away(node: &str) -> Refusal {
    let text = format!(
        "the node {node}, which has the lease, does not answer: try again, or acquire the lock \
         with another lease"
    );
    refusal(Code::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_has_half_of_the_calls_at_most() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = runtime.spawn(async {}).abort_handle();
        let call = |client: &str| HostedCall {
            client: client.to_owned(),
            heard: Instant::now(),
            task: task.clone(),
        };
        let mut calls = HostedCalls::default();
        let fill = |calls: &mut HostedCalls, from: &str, client: &str| {
            let mut ticket = 0;
            while calls.has_room(client) {
                calls.insert((from.to_owned(), ticket), call(client));
                ticket += 1;
            }
            ticket as usize
        };
        // It does not matter through which member they come.
        assert_eq!(fill(&mut calls, "n1", "client ci"), CALLS / 2);
        assert_eq!(fill(&mut calls, "n2", "client ci"), 0);
        assert_eq!(fill(&mut calls, "n2", "client web"), CALLS / 2);
        assert!(!calls.has_room("client other"), "all are taken");
        assert!(calls.remove(&("n1".to_owned(), 7)).is_some());
        assert!(calls.remove(&("n1".to_owned(), 7)).is_none());
        assert!(calls.has_room("client ci") && !calls.has_room("client web"));
        for ticket in 0..CALLS as u64 {
            for node in ["n1", "n2"] {
                drop(calls.remove(&(node.to_owned(), ticket)));
            }
        }
        assert!(calls.clients.is_empty(), "nothing is left");
        // Members of earlier versions name no client.
        assert_eq!(fill(&mut calls, "n1", ""), CALLS);
    }
}
