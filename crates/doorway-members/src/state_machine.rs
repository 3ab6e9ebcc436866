//! The state machine: the record, the holds and the rules to which the log is applied.
//!
//! All of them are in memory. On disk are their last snapshot and the log behind it, from which
//! they are made again after a restart.

use std::sync::Arc;

use doorway_node::members::{Answer, AuditLog, GroupState, RecordError};
use openraft::storage::RaftStateMachine;
use openraft::{AnyError, EntryPayload, OptionalSend, RaftSnapshotBuilder, StorageIOError};
use parking_lot::Mutex;

use crate::disk::{Change, Content};
use crate::encoding::Picture;
use crate::published_state::PublishedState;
use crate::types::{
    Entry, Image, LogId, Snapshot, SnapshotMeta, StorageError, StoredMembership, TypeConfig,
};
use crate::writer::Writer;

/// The state machine. Clones are the same machine.
#[derive(Clone, Debug)]
pub(crate) struct StateMachine {
    state: Arc<Mutex<State>>,
    shown: PublishedState,
    writer: Writer,
    #[cfg(test)]
    pub(crate) applied: Arc<Mutex<Vec<(LogId, Image)>>>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<LogId>,
    membership: StoredMembership,
    image: Image,
    snapshot: Option<Snapshot>,
}

impl StateMachine {
    /// The state that was found on disk.
    pub(crate) fn new(content: &mut Content, writer: Writer) -> Self {
        let snapshot = content.snapshot.take().map(Snapshot::from);
        let mut state = State::default();
        if let Some(snapshot) = &snapshot {
            state.replace(&snapshot.meta, &snapshot.snapshot);
        }
        state.snapshot = snapshot;
        Self {
            shown: PublishedState::new(state.image.as_ref()),
            state: Arc::new(Mutex::new(state)),
            writer,
            #[cfg(test)]
            applied: Arc::default(),
        }
    }

    /// What the node sees of the state.
    pub(crate) fn shown(&self) -> &PublishedState {
        &self.shown
    }

    /// The audit log.
    pub(crate) fn audit(&self) -> Arc<AuditLog> {
        let state = self.state.lock();
        state.image.as_ref().map(|image| Arc::clone(&image.audit)).unwrap_or_default()
    }

    /// Keep a snapshot, unless there is a newer one: a snapshot that is being made here may be
    /// overtaken by one that the leader sends, and the log before the newer one is gone.
    async fn keep(&self, snapshot: &Snapshot) -> Result<(), StorageError> {
        let saved = {
            let mut state = self.state.lock();
            let newest = state.snapshot.as_ref().and_then(|it| it.meta.last_log_id);
            if newest > snapshot.meta.last_log_id {
                return Ok(());
            }
            state.snapshot = Some(snapshot.clone());
            self.writer.save(Change::Snapshot(Box::new(Picture::from(snapshot))))
        };
        saved.await.map_err(|why| {
            let signature = Some(snapshot.meta.signature());
            StorageIOError::write_snapshot(signature, AnyError::error(why)).into()
        })
    }
}

/// The newest state that a file shows: the snapshot, and all entries behind it. The last entries
/// may not be committed.
pub(crate) fn newest(content: &mut Content) -> Image {
    let mut state = State::default();
    if let Some(snapshot) = content.snapshot.take().map(Snapshot::from) {
        state.replace(&snapshot.meta, &snapshot.snapshot);
    }
    for line in std::mem::take(&mut content.log).into_values() {
        state.apply(Entry::from(line));
    }
    state.image
}

impl State {
    fn replace(&mut self, meta: &SnapshotMeta, image: &Image) {
        self.last = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.image.clone_from(image);
    }

    fn apply(&mut self, entry: Entry) -> Answer {
        // When Raft is started again, what the former one has left may be applied twice.
        if self.last >= Some(entry.log_id) {
            return Answer::Refused(RecordError::Changed);
        }
        self.last = Some(entry.log_id);
        match entry.payload {
            EntryPayload::Blank => {}
            EntryPayload::Normal(command) => {
                // The first entry of the log founds the group, so there is a record.
                let Some(state) = &mut self.image else {
                    return Answer::Refused(RecordError::UnknownSeat);
                };
                return state.apply(&command);
            }
            EntryPayload::Membership(membership) => {
                if self.image.is_none() {
                    let mut founders = membership.nodes().filter_map(|(_, it)| it.founding.clone());
                    self.image = founders.next().map(|state| GroupState::from(*state));
                }
                self.membership = StoredMembership::new(Some(entry.log_id), membership);
            }
        }
        Answer::Done(self.image.as_ref().map_or(0, |state| state.record.number))
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        let state = self.state.lock();
        Ok((state.last, state.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Answer>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut answers = Vec::new();
        let image = {
            let mut state = self.state.lock();
            for entry in entries {
                answers.push(state.apply(entry));
                #[cfg(test)]
                self.applied.lock().extend(state.last.map(|last| (last, state.image.clone())));
            }
            state.image.clone()
        };
        self.shown.show(image.as_ref());
        Ok(answers)
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Image>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        image: Box<Image>,
    ) -> Result<(), StorageError> {
        let snapshot = Snapshot { meta: meta.clone(), snapshot: image };
        self.keep(&snapshot).await?;
        let mut state = self.state.lock();
        // When Raft is started again, a snapshot that the former one received may come late.
        if state.last < snapshot.meta.last_log_id {
            state.replace(&snapshot.meta, &snapshot.snapshot);
            self.shown.show((*snapshot.snapshot).as_ref());
        }
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, StorageError> {
        Ok(self.state.lock().snapshot.clone())
    }
}

impl RaftSnapshotBuilder<TypeConfig> for StateMachine {
    async fn build_snapshot(&mut self) -> Result<Snapshot, StorageError> {
        let snapshot = {
            let state = self.state.lock();
            let last = state.last.map_or_else(|| "empty".to_owned(), |last| last.to_string());
            let meta = SnapshotMeta {
                last_log_id: state.last,
                last_membership: state.membership.clone(),
                snapshot_id: last,
            };
            Snapshot { meta, snapshot: Box::new(state.image.clone()) }
        };
        self.keep(&snapshot).await?;
        Ok(snapshot)
    }
}
