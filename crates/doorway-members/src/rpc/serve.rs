//! Answering other stores.

use std::sync::Arc;

use doorway_node::members::{Answer, BoxedStream, Caller, Command, MemberId, RecordError, SeatId};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc};

use super::frame::{
    Agreement, Ask, Frames, Head, Hello, IN_FLIGHT, Question, Reply, ReplyBody, encode, pump,
};
use crate::core::{Core, Engine};
use crate::encoding::Place;
use crate::ending::Ending;
use crate::types::{Entry, LogId, Snapshot, Vote};

/// A store that answers others.
pub(crate) trait Answers: Send + Sync + 'static {
    /// Why the store has ended.
    fn ending(&self) -> &Ending;

    /// Answer a question.
    fn answer(
        &self,
        caller: &Caller,
        head: Head,
        ask: Ask,
    ) -> impl Future<Output = ReplyBody> + Send;
}

/// Answer the questions that come on a connection, until it ends.
pub(crate) async fn serve(core: Arc<impl Answers>, stream: BoxedStream, caller: Caller) {
    let (reader, writer) = tokio::io::split(stream);
    let mut frames = Frames::new(reader);
    let (out, replies) = mpsc::unbounded_channel();
    let writing = pump(writer, replies);
    tokio::pin!(writing);
    let in_flight = Arc::new(Semaphore::new(IN_FLIGHT));
    let caller = Arc::new(caller);
    let ending = core.ending().clone();
    let ended = ending.ended();
    tokio::pin!(ended);
    loop {
        let question = async {
            let permit = Arc::clone(&in_flight).acquire_owned().await;
            (permit, frames.next::<Question>().await)
        };
        let (permit, question) = tokio::select! {
            next = question => next,
            _ = &mut writing => return,
            _ = &mut ended => return,
        };
        let question = match question {
            Ok(Some(question)) => question,
            Ok(None) => return,
            Err(why) => {
                let Caller { name } = &*caller;
                tracing::warn!("the connection of `{name}` is closed: {why}");
                return;
            }
        };
        let (core, caller, out) = (Arc::clone(&core), Arc::clone(&caller), out.clone());
        // This task goes on when the connection ends: a question that is in the core of openraft
        // cannot be taken back.
        tokio::spawn(async move {
            let Question { number, head, body } = question;
            let body = core.answer(&caller, head, body).await;
            if let Ok(bytes) = encode(&Reply { number, body }) {
                let _ = out.send(Outgoing { bytes, _permit: permit });
            }
        });
    }
}

/// A reply on its way. It counts as a question in flight until it is written, so a peer that does
/// not read its replies cannot fill the memory.
struct Outgoing {
    bytes: Vec<u8>,
    _permit: Result<OwnedSemaphorePermit, AcquireError>,
}

impl AsRef<[u8]> for Outgoing {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers for Core {
    fn ending(&self) -> &Ending {
        &self.ending
    }

    async fn answer(&self, caller: &Caller, head: Head, ask: Ask) -> ReplyBody {
        if let Ask::Hello(group) = &ask {
            return self.hello(group);
        }
        if let Err(why) = self.check(caller, head, &ask) {
            tracing::debug!("a question of `{}` is refused: {why}", caller.name);
            return ReplyBody::Refused(why);
        }
        if let Ask::Put(command) = ask {
            let engine = self.engine();
            // The record of a node that does not lead may be too old to tell who belongs to the
            // group. That of a leader that has just been elected may be, too.
            if !engine.leads() {
                return ReplyBody::NotLeader;
            }
            if !self.may_put(SeatId(head.from), &command) {
                return ReplyBody::Answer(Answer::Refused(RecordError::UnknownSeat));
            }
            return engine.put(command).await;
        }
        // If this many questions are in the core, it waits for its disk.
        let Ok(_permit) = self.permits.try_acquire() else {
            return ReplyBody::Refused("the disk is too slow".to_owned());
        };
        let engine = self.engine();
        match ask {
            Ask::Vote { vote, last } => engine.vote(vote.into(), last).await,
            Ask::Append { vote, previous, lines, committed } => {
                let request = AppendEntriesRequest {
                    vote: vote.into(),
                    prev_log_id: previous.map(LogId::from),
                    entries: lines.into_iter().map(Entry::from).collect(),
                    leader_commit: committed.map(LogId::from),
                };
                match engine.raft.append_entries(request).await {
                    Ok(AppendEntriesResponse::Success) => ReplyBody::Appended,
                    Ok(AppendEntriesResponse::PartialSuccess(last)) => {
                        ReplyBody::Partly(last.map(Place::from))
                    }
                    Ok(AppendEntriesResponse::Conflict) => ReplyBody::Conflict,
                    Ok(AppendEntriesResponse::HigherVote(vote)) => {
                        ReplyBody::HigherVote(vote.into())
                    }
                    Err(error) => ReplyBody::Refused(error.to_string()),
                }
            }
            Ask::Snapshot { vote, picture } => {
                let snapshot = Snapshot::from(*picture);
                match engine.raft.install_full_snapshot(vote.into(), snapshot).await {
                    Ok(response) => ReplyBody::HigherVote(response.vote.into()),
                    Err(error) => ReplyBody::Refused(error.to_string()),
                }
            }
            Ask::Hello(_) | Ask::Ping | Ask::Put(_) => ReplyBody::Here,
        }
    }
}

/// Tell a node of a group by this name who this one is.
pub(crate) fn introduce(own: &str, hello: Hello, group: &str) -> ReplyBody {
    if group != own {
        return ReplyBody::Refused(format!(
            "this is a node of group `{own}`, not of group `{group}`"
        ));
    }
    // A node that belongs to a group has taken over what it knew of the one before.
    let former = hello.former.filter(|_| hello.cluster.is_none());
    ReplyBody::Hello(Hello { former, ..hello })
}

impl Core {
    fn hello(&self, group: &str) -> ReplyBody {
        let (name, address) = (self.name.clone(), self.address.clone());
        let (seat, cluster, former) = (self.seat, self.bond.cluster(), self.former);
        let agreement = Agreement::Raft;
        let hello = Hello { name, seat, cluster, address, former, agreement };
        introduce(&self.group, hello, group)
    }

    /// Check that a question is meant for this store, and comes from the seat that it names. The
    /// error says why it is refused.
    fn check(&self, caller: &Caller, head: Head, ask: &Ask) -> Result<(), String> {
        let Self { seat, name, .. } = self;
        if head.to != Some(*seat) {
            let meant = head.to.unwrap_or_default();
            return Err(format!(
                "the question is for seat {meant:x}, but `{name}` has seat {seat:x}; it may have \
                 got a new data directory"
            ));
        }
        if let Some(known) = self.name_of(head.from)
            && known != caller.name
        {
            let (from, caller) = (head.from, &caller.name);
            return Err(format!("seat {from:x} belongs to `{known}`, not to `{caller}`"));
        }
        let Some(theirs) = head.cluster else {
            return Err("the sender belongs to no group yet".to_owned());
        };
        let refused = |ours: u128| {
            Err(format!(
                "`{name}` belongs to group {ours:032x}, but the sender to group {theirs:032x}"
            ))
        };
        match self.bond.cluster() {
            Some(ours) if ours == theirs => Ok(()),
            Some(ours) => refused(ours),
            // The leader of a group makes this node belong to it.
            None if !matches!(ask, Ask::Put(_) | Ask::Ping) => {
                self.bond.join(theirs).or_else(refused)
            }
            None => Err(format!("`{name}` belongs to no group yet")),
        }
    }

    /// Whether a seat may propose a command. A machine that was removed from the group still has
    /// its certificate. It may only hear that its own membership is over, and drop its own holds:
    /// its clients may still release locks that the group keeps for them.
    fn may_put(&self, from: SeatId, command: &Command) -> bool {
        let Some(record) = self.records.borrow().clone() else { return false };
        let is_own = |id: MemberId| record.member(id).is_ok_and(|member| member.seat == from);
        match command {
            Command::Join { seat, .. } if *seat == from => true,
            Command::Renew { id, .. } | Command::Leave { id } if is_own(*id) => true,
            // Holds are published before the record that belongs to them, so these are not older.
            Command::Drop(id) if self.holds.borrow().is_of_seat(&record, id, from) => true,
            _ => record.seat(from).is_some(),
        }
    }

    /// The name of the node of a seat. A seat may be unknown here: this node may have been away
    /// while it was added.
    fn name_of(&self, seat: u64) -> Option<String> {
        let record = self.records.borrow();
        let seats = record.iter().flat_map(|record| &record.seats);
        if let Some(known) = seats.into_iter().find(|known| known.id.0 == seat) {
            return Some(known.name.clone());
        }
        let metrics = self.engine().raft.metrics();
        let metrics = metrics.borrow();
        let peer = metrics.membership_config.membership().get_node(&seat)?;
        Some(peer.name.clone())
    }
}

impl Engine {
    async fn vote(&self, vote: Vote, last: Option<Place>) -> ReplyBody {
        let known = self.raft.metrics().borrow().vote;
        if !self.guards.may_vote(known, vote) {
            return ReplyBody::Vote { vote: known.into(), granted: false, last: None };
        }
        let request = VoteRequest::new(vote, last.map(LogId::from));
        match self.raft.vote(request).await {
            Ok(response) => ReplyBody::Vote {
                vote: response.vote.into(),
                granted: response.vote_granted,
                last: response.last_log_id.map(Place::from),
            },
            Err(error) => ReplyBody::Refused(error.to_string()),
        }
    }
}
