//! Asks the other members about a lock, and puts their answers together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::Name;
use doorway_protocol::text::cut;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::link::{MESSAGE_MAX, Versions};
use crate::messages::{Answer, CLIENT_BYTES, ClientReport, ClientStatus, Message, Question};
use crate::mode::to_client;
use crate::net::{Peer, PeerId};
use crate::shell::{Membership, NodeShell};
use crate::wait_report::{LockClient, WaitGraph, WaitReport, Waiter};

/// How long the other members have to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// How many locks beyond the first one the search for a deadlock follows.
const REACH: usize = 32;

/// How many clients of a lock a node reports at most in one answer. A message has room for twice as
/// many.
const REPORTED: usize = 1024;

/// How many bytes of a message are not the answer itself, at most.
const SMALL: usize = 64;

/// What the services at other members have answered.
#[derive(Clone, Debug, Default)]
pub struct MemberAnswers {
    /// The answers, each with the name of its member and when it came.
    pub answers: Vec<(String, Vec<u8>, Instant)>,
    /// The names of the members that are connected but did not answer in time, or cannot.
    pub silent: Vec<String>,
}

/// The questions to which answers may still come.
#[derive(Debug, Default)]
pub(crate) struct Questions(Mutex<QuestionTable>);

#[derive(Debug, Default)]
struct QuestionTable {
    last: u64,
    waiting: BTreeMap<u64, mpsc::UnboundedSender<(PeerId, Answer)>>,
}

/// A question that was asked. Dropping it closes the question.
struct OpenQuestion<'a> {
    questions: &'a Questions,
    number: u64,
    answers: mpsc::UnboundedReceiver<(PeerId, Answer)>,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.questions.0.lock().waiting.remove(&self.number);
    }
}

impl Questions {
    fn ask(&self) -> OpenQuestion<'_> {
        let (sender, answers) = mpsc::unbounded_channel();
        let mut open = self.0.lock();
        open.last += 1;
        let number = open.last;
        open.waiting.insert(number, sender);
        OpenQuestion { questions: self, number, answers }
    }

    /// Pass on an answer that has arrived. An answer to a question that is closed is dropped.
    pub(crate) fn answered(&self, from: PeerId, number: u64, answer: Answer) {
        if let Some(sender) = self.0.lock().waiting.get(&number) {
            let _ = sender.send((from, answer));
        }
    }
}

/// The answer of one node about a lock, and when it came.
struct NodeAnswer {
    node: PeerId,
    clients: Vec<ClientReport>,
    at: Instant,
}

impl NodeShell {
    /// Answer a question of another member.
    pub(crate) fn answer(&self, from: PeerId, question: &Question) -> Answer {
        match question {
            Question::Clients(lock) => Answer::Clients(self.clients_of(lock)),
            Question::Service(question) => {
                let answer = self.answer.as_ref().and_then(|it| it.answer(question));
                Answer::Service(answer.filter(|bytes| bytes.len() <= MESSAGE_MAX - SMALL))
            }
            Question::Record(order) => {
                // A member that cannot begin is missing from the recording, which says so.
                let _ = self.begin_recording(order, Some(from));
                Answer::Recording(None)
            }
            Question::Recorded(id) => Answer::Recording(self.end_recording(*id)),
        }
    }

    /// Ask all members that are connected a question of this node's service.
    pub(crate) async fn ask_members(&self, question: Vec<u8>) -> MemberAnswers {
        let (heard, silent) = self.ask_each(Question::Service(question)).await;
        let answered = |(node, answer, at)| match answer {
            Answer::Service(Some(bytes)) => Ok((self.peer_name(node), bytes, at)),
            _ => Err(self.peer_name(node)),
        };
        let mut answers = MemberAnswers { silent, ..MemberAnswers::default() };
        for answer in heard.into_iter().map(answered) {
            match answer {
                Ok(answer) => answers.answers.push(answer),
                Err(node) => answers.silent.push(node),
            }
        }
        answers
    }

    /// Ask the service at one member a question of this node's service. None if that member is not
    /// connected, cannot answer, or does not do so in time.
    pub(crate) async fn ask_member(&self, name: &str, question: Vec<u8>) -> Option<Vec<u8>> {
        let peer = self.peers().iter().find(|peer| peer.name() == name).cloned()?;
        if !peer.is_up() || !peer.speaks(Versions::SERVICE) {
            return None;
        }
        let mut asked = self.questions.ask();
        self.send(peer.id(), &Message::Ask(asked.number, Question::Service(question)));
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match timeout_at(deadline, asked.answers.recv()).await {
                Ok(Some((node, Answer::Service(answer)))) if node == peer.id() => return answer,
                Ok(Some(_)) => {} // Of a member that was not asked.
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Ask each connected member that knows such questions. Returns the answers with the moment at
    /// which each came, and the names of the members that did not answer in time.
    pub(crate) async fn ask_each(
        &self,
        question: Question,
    ) -> (Vec<(PeerId, Answer, Instant)>, Vec<String>) {
        let mut asked = self.questions.ask();
        let question = Message::Ask(asked.number, question);
        let peers = self.peers();
        let up = || peers.iter().filter(|peer| peer.is_up());
        let knows = |peer: &&Arc<Peer>| peer.speaks(Versions::SERVICE);
        let due = up().filter(knows).map(|peer| self.send(peer.id(), &question)).count();
        let deadline = Instant::now() + TIMEOUT;
        let mut heard: Vec<(PeerId, Answer, Instant)> = Vec::new();
        while heard.len() < due {
            let Ok(Some((node, answer))) = timeout_at(deadline, asked.answers.recv()).await else {
                break;
            };
            if heard.iter().all(|(earlier, ..)| *earlier != node) {
                heard.push((node, answer, Instant::now()));
            }
        }
        let silent = up().filter(|peer| heard.iter().all(|(node, ..)| *node != peer.id()));
        let silent = silent.map(|peer| peer.name().to_owned()).collect();
        (heard, silent)
    }

    /// The clients of a lock at this node, and the waiting requests of its holders' sessions for
    /// other locks.
    fn clients_of(&self, lock: &Name) -> Vec<ClientReport> {
        let now = self.now();
        let mut clients = self.shard(self.shard_of(lock)).reports(Some(lock), now);
        clients.truncate(REPORTED);
        let inside = |client: &&ClientReport| matches!(client.status, ClientStatus::Inside(_));
        let sessions: BTreeSet<u64> =
            clients.iter().filter(inside).map(|client| client.session).collect();
        if sessions.iter().any(|session| *session != 0) {
            for index in 0..self.shards() {
                let reports = self.shard(index).reports(None, now).into_iter();
                clients.extend(reports.filter(|client| {
                    let waits =
                        matches!(client.status, ClientStatus::Waiting(_)) && client.lock != *lock;
                    waits && client.session != 0 && sessions.contains(&client.session)
                }));
            }
        }
        clients.truncate(2 * REPORTED);
        self.describe(&mut clients);
        clients
    }

    /// Find out all that can be known about a lock and the clients that wait for it here.
    pub(crate) async fn why(&self, lock: &Name) -> WaitReport {
        let heard = self.ask_all(lock).await;
        let mut waits = WaitGraph::default();
        let mut locks = BTreeSet::from([lock.clone()]);
        add_reports(&mut waits, &heard);
        let mut ahead = waits.beyond(lock);
        // Follow the sessions that hold a lock and wait for another one, from lock to lock.
        for _ in 0..REACH {
            let Some(next) = ahead.pop_first() else { break };
            if locks.insert(next.clone()) {
                add_reports(&mut waits, &self.ask_all(&next).await);
                ahead.extend(waits.beyond(&next));
            }
        }
        self.report(lock, &heard, &waits)
    }

    /// Ask all members that are connected about a lock. The answer of this node comes first.
    async fn ask_all(&self, lock: &Name) -> Vec<NodeAnswer> {
        let own = NodeAnswer { node: self.me, clients: self.clients_of(lock), at: Instant::now() };
        let mut heard = vec![own];
        let mut asked = self.questions.ask();
        let question = Message::Ask(asked.number, Question::Clients(lock.clone()));
        let peers = self.peers();
        let up = peers.iter().filter(|peer| peer.is_up());
        let due = up.map(|peer| self.send(peer.id(), &question)).count();
        let deadline = Instant::now() + TIMEOUT;
        while heard.len() <= due {
            let Ok(Some((node, answer))) = timeout_at(deadline, asked.answers.recv()).await else {
                break;
            };
            let Answer::Clients(clients) = answer else { continue };
            if heard.iter().any(|earlier| earlier.node == node) {
                continue; // Each member is asked once, so a second answer is wrong.
            }
            self.note_clients(node, lock, &clients);
            heard.push(NodeAnswer { node, clients, at: Instant::now() });
        }
        heard
    }

    /// Remember the holders of a lock at another member of a fixed group. Where members are removed
    /// from a group that agrees on them, what they held ends with that.
    fn note_clients(&self, node: PeerId, lock: &Name, clients: &[ClientReport]) {
        if let Membership::Fixed(_) = &self.membership {
            self.heard.lock().note_clients(self.now(), node, lock, clients);
        }
    }

    /// The clients that held a lock at members that are away, as far as this node knows. Nobody is
    /// asked.
    pub(crate) fn last_holders(&self, lock: &Name) -> Vec<LockClient> {
        let (now, peers) = (self.now(), self.peers());
        let mut holders = Vec::new();
        for peer in peers.iter().filter(|peer| !peer.is_up()) {
            let Some(known) = self.heard.lock().get(peer.id(), lock).cloned() else { continue };
            let age = now.saturating_sub(known.at);
            holders.extend(known.holders.iter().map(|client| self.who(peer.id(), client, age)));
            if known.holders.is_empty() {
                holders.push(LockClient {
                    node: peer.name().to_owned(),
                    session: None,
                    client: None,
                    mode: to_client(known.mode),
                    fence: None,
                    since: Duration::ZERO,
                    age,
                    circle: None,
                });
            }
        }
        holders
    }

    fn report(&self, lock: &Name, heard: &[NodeAnswer], waits: &WaitGraph) -> WaitReport {
        let me = self.me;
        let missing = self.unheard(lock);
        let view = self.view();
        let mut why = WaitReport {
            lock: lock.clone(),
            view,
            holders: Vec::new(),
            waiters: Vec::new(),
            elsewhere: Vec::new(),
            away: self.away(),
            awaited: self.awaited(),
            reclaiming: self.all_reclaiming(),
            silent: Vec::new(),
            closed: self.closed_locks(),
        };
        why.closed.retain(|closed| closed.lock == *lock);
        for NodeAnswer { node, clients, at } in heard {
            for client in clients.iter().filter(|client| client.lock == *lock) {
                let who = self.who(*node, client, at.elapsed());
                match client.status {
                    ClientStatus::Inside(_) => why.holders.push(who),
                    ClientStatus::Waiting(_) if *node != me => {
                        let circle = waits.circle((*node, client.session));
                        let circle = circle.map(|circle| self.named(&circle));
                        why.elsewhere.push(LockClient { circle, ..who });
                    }
                    ClientStatus::Waiting(place) => {
                        let circle = waits.circle((me, client.session));
                        let circle = circle.map(|circle| self.named(&circle));
                        why.waiters.push(Waiter { circle, ..waiter(who, place, &missing) });
                    }
                }
            }
        }
        let answered = |node: PeerId| heard.iter().any(|heard| heard.node == node);
        let peers = self.peers();
        let silent = peers.iter().filter(|peer| peer.is_up() && !answered(peer.id()));
        why.silent = silent.map(|peer| peer.name().to_owned()).collect();
        why
    }

    pub(crate) fn who(&self, node: PeerId, client: &ClientReport, age: Duration) -> LockClient {
        LockClient {
            node: self.peer_name(node),
            session: (client.session != 0).then_some(client.session),
            mode: to_client(client.mode),
            fence: match client.status {
                ClientStatus::Inside(fence) => Some(fence),
                ClientStatus::Waiting(_) => None,
            },
            since: Duration::from_millis(client.since_ms),
            age,
            client: client.client.as_deref().map(|client| cut(client, CLIENT_BYTES).to_owned()),
            circle: None,
        }
    }

    /// The members to which this node has sent something for its request, and from which it has
    /// heard nothing since.
    pub(crate) fn unheard(&self, lock: &Name) -> Vec<String> {
        let shard = self.shard(self.shard_of(lock));
        let unheard = shard.unheard(lock).into_iter();
        unheard.map(|node| shard.seating().name(node).to_owned()).collect()
    }

    fn named(&self, circle: &[(PeerId, u64)]) -> Vec<(String, u64)> {
        let name = |(node, session): &(PeerId, u64)| (self.peer_name(*node), *session);
        circle.iter().map(name).collect()
    }
}

/// A waiting client of this node, with no deadlock found yet.
pub(crate) fn waiter(who: LockClient, place: u32, missing: &[String]) -> Waiter {
    let LockClient { session, client, mode, since, .. } = who;
    let (place, missing) = (place as usize, missing.to_vec());
    Waiter { session, client, mode, place, since, missing, circle: None }
}

fn add_reports(waits: &mut WaitGraph, heard: &[NodeAnswer]) {
    for NodeAnswer { node, clients, .. } in heard {
        for client in clients {
            waits.add(*node, client);
        }
    }
}
