//! What the group has answered to the commands of its nodes, and whether its record shows that.
//!
//! An answer is a promise: whatever becomes of the leader that gave it, the group has carried the
//! command out once, and does not forget that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorway_members::RaftStore;
use doorway_node::members::{
    Answer, BoxedFuture, BoxedStream, Caller, Command, Holds, Member, MemberId, Record, RuleTables,
    Seat, SeatId, StoreHealth, UnknownOutcome, ViewStore,
};
use tokio::sync::watch;

use super::host::Host;

/// The store of a node. It shows the referee all answers that the node gets.
pub(crate) struct ObservedStore {
    pub(crate) store: Arc<RaftStore>,
    pub(crate) host: Host,
}

impl ViewStore for ObservedStore {
    fn put(&self, command: Command) -> BoxedFuture<'_, Result<Answer, UnknownOutcome>> {
        Box::pin(async move {
            let answer = self.store.put(command.clone()).await?;
            let Host { stage, clock, .. } = &self.host;
            let mut now = stage.now.lock();
            let revision = now.referee.newest_record().map_or(0, |record| record.revision);
            now.referee.answers.note(clock.elapsed(), command, answer.clone(), revision);
            Ok(answer)
        })
    }

    fn seat(&self) -> SeatId {
        self.store.seat()
    }

    fn watch(&self) -> watch::Receiver<Option<Arc<Record>>> {
        self.store.watch()
    }

    fn holds(&self) -> watch::Receiver<Arc<Holds>> {
        self.store.holds()
    }

    fn rules(&self) -> watch::Receiver<Arc<RuleTables>> {
        self.store.rules()
    }

    fn leads(&self) -> bool {
        self.store.leads()
    }

    fn serve(&self, stream: BoxedStream, caller: Caller) -> BoxedFuture<'static, ()> {
        self.store.serve(stream, caller)
    }

    fn health(&self) -> StoreHealth {
        self.store.health()
    }
}

/// A command and its answer. Refusals change nothing, and are not kept.
struct Answered {
    at: Duration,
    command: Command,
    answer: Answer,
    /// The newest revision of the record that any node knew then.
    revision: u64,
}

/// All answers but refusals.
#[derive(Default)]
pub(crate) struct Answers(Vec<Answered>);

impl Answers {
    fn note(&mut self, at: Duration, command: Command, answer: Answer, revision: u64) {
        if !matches!(answer, Answer::Refused(_)) {
            self.0.push(Answered { at, command, answer, revision });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Check that the record shows everything that was answered before this time. What was answered
    /// later may not be known to the nodes yet.
    pub(crate) fn check(&self, record: &Record, until: Duration) -> Result<(), String> {
        let old: Vec<&Answered> = self.0.iter().filter(|answered| answered.at < until).collect();
        let forgotten = |answered: &&&Answered| !is_shown(answered, record);
        if let Some(Answered { at, command, answer, revision }) = old.iter().find(forgotten) {
            return Err(format!(
                "at {at:?}, when the record had revision {revision}, {command:?} was answered by \
                 {answer:?}, which is not in {record:?}"
            ));
        }
        let mut beats: BTreeMap<MemberId, u64> = BTreeMap::new();
        for answered in &old {
            if let Command::Renew { id, .. } = &answered.command {
                *beats.entry(*id).or_default() += 1;
            }
        }
        let short = |(id, beats): &(MemberId, u64)| {
            record.member(*id).is_ok_and(|member| member.beat < *beats)
        };
        if let Some((id, beats)) = beats.into_iter().find(short) {
            return Err(format!("{beats} renewals of {id:?} were answered: {record:?}"));
        }
        let count = |is: fn(&Command) -> bool| {
            old.iter().filter(|answered| is(&answered.command)).count() as u64
        };
        let changes = count(|command| !matches!(command, Command::Note(_)));
        let holds = count(|command| matches!(command, Command::Hold { .. }));
        if record.revision < changes || record.holds < holds {
            return Err(format!("{changes} changes and {holds} holds were answered: {record:?}"));
        }
        Ok(())
    }
}

/// Whether a record that is newer than the answer shows what was answered.
fn is_shown(Answered { command, answer, revision, .. }: &Answered, record: &Record) -> bool {
    let gone = |id: MemberId| record.member(id).is_err();
    let done = match command {
        Command::Enter { id, .. } => {
            gone(*id) || record.member(*id).is_ok_and(|member| member.since.is_some())
        }
        Command::Remove { all, .. } => all.iter().all(|(id, _)| gone(*id)),
        Command::Forget { id, .. } | Command::Leave { id } => gone(*id),
        Command::Evict { id, .. } => {
            gone(*id) || record.member(*id).is_ok_and(|member| member.evicted)
        }
        Command::Bump { number } => record.number > *number,
        _ => true,
    };
    let promised = match (command, answer) {
        (Command::Join { seat, nonce, .. }, Answer::Joined(id)) => {
            let own = |member: &Member| (member.seat, member.nonce) == (*seat, *nonce);
            record.last >= id.0 && record.member(*id).map_or(true, own)
        }
        (Command::Renew { id, .. }, Answer::Renewed { number, lease_ms, .. }) => {
            let kept = record.member(*id).map_or(true, |member| member.lease_ms >= *lease_ms);
            record.number >= *number && kept
        }
        (_, Answer::Done(number)) => record.number >= *number,
        _ => false,
    };
    done && promised && record.revision >= *revision
}

#[test]
fn an_answer_that_the_record_does_not_show_is_noticed() {
    let id = SeatId(7);
    let seat = Seat { id, name: "a".to_owned(), address: "at-a".to_owned(), voter: true };
    let mut record = Record::new(1, 10_000, 0, vec![seat]);
    let member = MemberId(1);
    let renew = Command::Renew { id: member, cut: Vec::new() };
    let mut answers = Answers::default();
    for command in [
        Command::Join { seat: id, nonce: 1, rules: 0 },
        renew.clone(),
        Command::Enter { id: member, number: 0, replaces: Vec::new(), inherits: true },
        Command::Bump { number: 1 },
        renew,
        Command::Evict { id: member, number: 2 },
        Command::Leave { id: member },
    ] {
        let before = record.clone();
        let answer = record.apply(&command);
        answers.note(Duration::ZERO, command.clone(), answer, record.revision);
        let until = Duration::from_secs(1);
        assert_eq!(answers.check(&record, until), Ok(()), "{command:?}");
        assert!(answers.check(&before, until).is_err(), "{command:?} is forgotten");
        assert_eq!(answers.check(&before, Duration::ZERO), Ok(()), "it may not be known yet");
    }
}
