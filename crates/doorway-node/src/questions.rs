//! Asking the peers what only they know, and putting the answers together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorway_core::NodeId;
use doorway_protocol::Name;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::clients::cut;
use crate::inner::Inner;
use crate::mode::to_client;
use crate::why::{Waiter, Waits, Who, Why};
use crate::wire::{Answer, ClientReport, Message, Question, Stand};

/// How long the peers have to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many locks away a circle is looked for.
const REACH: usize = 32;

/// How many clients a node tells of at most in one answer: twice as many fit into a message.
const TOLD: usize = 1024;

/// The questions that wait for answers, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Questions(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    last: u64,
    waiting: BTreeMap<u64, mpsc::UnboundedSender<(NodeId, Answer)>>,
}

/// A question that was asked; dropping it ends the wait.
struct Asked<'a> {
    questions: &'a Questions,
    number: u64,
    answers: mpsc::UnboundedReceiver<(NodeId, Answer)>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.questions.0.lock().waiting.remove(&self.number);
    }
}

impl Questions {
    fn ask(&self) -> Asked<'_> {
        let (sender, answers) = mpsc::unbounded_channel();
        let mut open = self.0.lock();
        open.last += 1;
        let number = open.last;
        open.waiting.insert(number, sender);
        Asked { questions: self, number, answers }
    }

    /// An answer has come; one to no question that is open is dropped.
    pub(crate) fn answered(&self, from: NodeId, number: u64, answer: Answer) {
        if let Some(sender) = self.0.lock().waiting.get(&number) {
            let _ = sender.send((from, answer));
        }
    }
}

/// What one node said of a lock, and when.
struct Heard {
    node: NodeId,
    clients: Vec<ClientReport>,
    at: Instant,
}

impl Inner {
    /// Answer a question of a peer.
    pub(crate) fn answer(&self, question: &Question) -> Answer {
        let Question::Clients(lock) = question;
        Answer::Clients(self.clients_of(lock))
    }

    /// The clients of a lock at this node, and all that those of them inside wait for.
    fn clients_of(&self, lock: &Name) -> Vec<ClientReport> {
        let now = self.now();
        let mut clients = self.shard(self.shard_of(lock)).reports(Some(lock), now);
        clients.truncate(TOLD);
        let inside = |client: &&ClientReport| matches!(client.stand, Stand::Inside(_));
        let sessions: BTreeSet<u64> =
            clients.iter().filter(inside).map(|client| client.session).collect();
        if sessions.iter().any(|session| *session != 0) {
            for index in 0..self.shards() {
                let reports = self.shard(index).reports(None, now).into_iter();
                clients.extend(reports.filter(|client| {
                    let waits = matches!(client.stand, Stand::Waiting(_)) && client.lock != *lock;
                    waits && client.session != 0 && sessions.contains(&client.session)
                }));
            }
        }
        clients.truncate(2 * TOLD);
        self.describe(&mut clients);
        clients
    }

    /// Everything that can be found out about a lock and those who wait for it here.
    pub(crate) async fn why(&self, lock: &Name) -> Why {
        let heard = self.hear(lock).await;
        let mut waits = Waits::default();
        let mut locks = BTreeSet::from([lock.clone()]);
        note(&mut waits, &heard);
        let mut ahead = waits.beyond(lock);
        // From lock to lock, as far as those inside wait for another.
        for _ in 0..REACH {
            let Some(next) = ahead.pop_first() else { break };
            if locks.insert(next.clone()) {
                note(&mut waits, &self.hear(&next).await);
                ahead.extend(waits.beyond(&next));
            }
        }
        self.tell(lock, &heard, &waits)
    }

    /// Ask everyone about a lock, ourselves first.
    async fn hear(&self, lock: &Name) -> Vec<Heard> {
        let own = Heard { node: self.setup.me, clients: self.clients_of(lock), at: Instant::now() };
        let mut heard = vec![own];
        let mut asked = self.questions.ask();
        let question = Message::Ask(asked.number, Question::Clients(lock.clone()));
        let up = self.peers().filter(|peer| peer.is_up());
        let due = up.map(|peer| self.send(peer.id(), &question)).count();
        let deadline = Instant::now() + PATIENCE;
        while heard.len() <= due {
            let Ok(Some((node, answer))) = timeout_at(deadline, asked.answers.recv()).await else {
                break;
            };
            let Answer::Clients(clients) = answer;
            if heard.iter().any(|earlier| earlier.node == node) {
                continue; // Nobody is asked twice.
            }
            heard.push(Heard { node, clients, at: Instant::now() });
        }
        heard
    }

    fn tell(&self, lock: &Name, heard: &[Heard], waits: &Waits) -> Why {
        let me = self.setup.me;
        let missing = self.unheard(lock);
        let awaited = self.views().missing();
        let view = self.view();
        let mut why = Why {
            lock: lock.clone(),
            view,
            holders: Vec::new(),
            waiters: Vec::new(),
            elsewhere: Vec::new(),
            away: self.away(),
            awaited: awaited.iter().map(|node| self.names[node.index()].clone()).collect(),
            reclaiming: self.all_reclaiming(),
            silent: Vec::new(),
        };
        for Heard { node, clients, at } in heard {
            for client in clients.iter().filter(|client| client.lock == *lock) {
                let who = self.who(*node, client, at.elapsed());
                match client.stand {
                    Stand::Inside(_) => why.holders.push(who),
                    Stand::Waiting(_) if *node != me => why.elsewhere.push(who),
                    Stand::Waiting(place) => {
                        let circle = waits.circle((me, client.session));
                        let circle = circle.map(|circle| self.named(&circle));
                        why.waiters.push(Waiter { circle, ..waiter(who, place, &missing) });
                    }
                }
            }
        }
        let answered = |node: NodeId| heard.iter().any(|heard| heard.node == node);
        let silent = self.peers().filter(|peer| peer.is_up() && !answered(peer.id()));
        why.silent = silent.map(|peer| peer.name().to_owned()).collect();
        why
    }

    pub(crate) fn who(&self, node: NodeId, client: &ClientReport, age: Duration) -> Who {
        Who {
            node: self.names[node.index()].clone(),
            session: (client.session != 0).then_some(client.session),
            mode: to_client(client.mode),
            fence: match client.stand {
                Stand::Inside(fence) => Some(fence),
                Stand::Waiting(_) => None,
            },
            since: Duration::from_millis(client.since_ms),
            age,
            client: client.client.as_deref().map(|client| cut(client).to_owned()),
        }
    }

    /// Who was asked for this node's request and has not answered since.
    pub(crate) fn unheard(&self, lock: &Name) -> Vec<String> {
        let unheard = self.shard(self.shard_of(lock)).unheard(lock);
        unheard.into_iter().map(|node| self.names[node.index()].clone()).collect()
    }

    fn named(&self, circle: &[(NodeId, u64)]) -> Vec<(String, u64)> {
        let name = |(node, session): &(NodeId, u64)| (self.names[node.index()].clone(), *session);
        circle.iter().map(name).collect()
    }
}

/// A client of this node that waits, in no circle as far as is known.
pub(crate) fn waiter(who: Who, place: u32, missing: &[String]) -> Waiter {
    let Who { session, client, mode, since, .. } = who;
    let (place, missing) = (place as usize, missing.to_vec());
    Waiter { session, client, mode, place, since, missing, circle: None }
}

fn note(waits: &mut Waits, heard: &[Heard]) {
    for Heard { node, clients, .. } in heard {
        for client in clients {
            waits.note(*node, client);
        }
    }
}
