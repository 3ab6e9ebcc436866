//! The replicated log: in memory for reading, and on disk.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::RangeBounds;
use std::sync::Arc;

use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::{AnyError, OptionalSend, RaftLogReader, StorageIOError};
use parking_lot::Mutex;

use crate::disk::{Change, Content};
use crate::encoding::Line;
use crate::types::{Entry, LogId, StorageError, TypeConfig, Vote};
use crate::writer::Writer;

/// The log. Clones are the same log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    state: Arc<Mutex<State>>,
    writer: Writer,
}

/// What is on disk, or will be when the writer has come that far.
#[derive(Debug)]
struct State {
    entries: BTreeMap<u64, Entry>,
    purged: Option<LogId>,
    vote: Option<Vote>,
    committed: Option<LogId>,
}

impl Log {
    /// The log that was found on disk.
    pub(crate) fn new(content: &mut Content, writer: Writer) -> Self {
        let lines = std::mem::take(&mut content.log).into_iter();
        let state = State {
            entries: lines.map(|(index, line)| (index, line.into())).collect(),
            purged: content.purged.map(LogId::from),
            vote: content.vote.map(Vote::from),
            committed: content.committed.map(LogId::from),
        };
        Self { state: Arc::new(Mutex::new(state)), writer }
    }
}

impl RaftLogReader<TypeConfig> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry>, StorageError> {
        let state = self.state.lock();
        Ok(state.entries.range(range).map(|(_, entry)| entry.clone()).collect())
    }
}

impl RaftLogStorage<TypeConfig> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, StorageError> {
        let state = self.state.lock();
        let last = state.entries.last_key_value().map(|(_, entry)| entry.log_id);
        let last_log_id = last.or(state.purged);
        Ok(LogState { last_purged_log_id: state.purged, last_log_id })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        self.state.lock().vote = Some(*vote);
        let saved = self.writer.save(Change::Vote((*vote).into())).await;
        saved.map_err(|why| StorageIOError::write_vote(AnyError::error(why)).into())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.state.lock().vote)
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        self.state.lock().committed = committed;
        if let Some(committed) = committed {
            self.writer.note_committed(committed.into());
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        Ok(self.state.lock().committed)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<TypeConfig>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut lines = Vec::new();
        {
            let mut state = self.state.lock();
            for entry in entries {
                lines.push(Line::from(&entry));
                state.entries.insert(entry.log_id.index, entry);
            }
        }
        self.writer.flush(Change::Append(lines), callback);
        Ok(())
    }

    // Nobody has to wait for the next two. If they get lost in a crash, so does everything after
    // them, because the file is written in the order of the queue.

    async fn truncate(&mut self, from: LogId) -> Result<(), StorageError> {
        self.state.lock().entries.split_off(&from.index);
        self.writer.write(Change::Truncate(from.index));
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), StorageError> {
        {
            let mut state = self.state.lock();
            state.entries = state.entries.split_off(&(upto.index + 1));
            state.purged = Some(upto);
        }
        self.writer.write(Change::Purge(upto.into()));
        Ok(())
    }
}
