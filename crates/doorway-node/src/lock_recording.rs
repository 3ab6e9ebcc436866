//! Recordings of single locks, for a while, at all members.
//!
//! Such a recording begins while the lock is in use. The members begin one after the other, and
//! messages are under way meanwhile. So a member that begins sends a marker to all others, as in
//! the snapshots of Chandy and Lamport: a message that arrives before the marker of its sender was
//! sent before its sender began, and is written down as early. A member that gets a marker begins
//! too. After that every message that is sent is recorded at both ends.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorway_protocol::Name;
use doorway_protocol::recording::{self, End, EndLine, Header, LockLine};
use parking_lot::Mutex;

use crate::link::Versions;
use crate::locks::{LockEvent, Record, Shard, ShardEffects};
use crate::messages::{Answer, Message, Question, RecordOrder};
use crate::net::PeerId;
use crate::recorder::{line, line_of, micros};
use crate::seating::Seating;
use crate::shell::NodeShell;

/// The longest time for which a single lock is recorded.
pub const LONGEST_RECORDING: Duration = Duration::from_mins(1);

/// How many bytes a member records at most. They fit into one message.
const ROOM: usize = 1 << 18;

/// How many single locks a node records at a time.
const MOST: usize = 4;

/// How long a recording that has ended waits for the member that ordered it.
const KEPT: Duration = Duration::from_secs(30);

/// What the members have recorded about one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRecording {
    /// The recordings of all members, one after the other.
    pub text: String,
    /// The members from which nothing came. The recording says that they are missing.
    pub missing: Vec<String>,
}

/// Why a lock was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The node records several locks already.
    #[error("this node records {MOST} locks already, the limit: try again when one has ended")]
    Busy,
}

/// The recordings of single locks that are made at this node.
#[derive(Debug)]
pub(crate) struct LockRecordings {
    /// When the clock of the node began.
    began: SystemTime,
    /// How many there are, so that nobody needs to look where there are none.
    count: AtomicUsize,
    open: Mutex<BTreeMap<u64, OpenRecording>>,
}

#[derive(Debug)]
struct OpenRecording {
    lock: Name,
    /// Until when, by the clock of the node.
    until: Duration,
    /// The members whose marker has come.
    begun: Vec<PeerId>,
    text: Vec<u8>,
    /// How it has ended, if it has.
    ended: Option<End>,
}

impl OpenRecording {
    /// Write down what the lock did, if that is still wanted.
    fn note(&mut self, shell: &NodeShell, seating: &Seating, record: &Record) {
        if self.ended.is_none() && record.at > self.until {
            self.ended = Some(End::Time);
        }
        for event in &record.events {
            if self.ended.is_none() && self.text.len() > ROOM {
                self.ended = Some(End::Overflow);
            }
            if self.ended.is_some() {
                return;
            }
            let mut told = line_of(seating, record.rule, event.clone());
            if let (recording::Event::Receive { early, .. }, LockEvent::Receive { from }) =
                (&mut told, event)
            {
                let peer = shell.seatings.peer(record.view, *from);
                *early = peer.is_none_or(|peer| !self.begun.contains(&peer));
            }
            let (at, view, lock) = (micros(record.at), record.view, record.lock.to_string());
            put(&mut self.text, &LockLine { at, view, lock, event: told });
        }
    }
}

/// Write a line into memory.
fn put(text: &mut Vec<u8>, value: &impl serde::Serialize) {
    line(text, value).expect("memory can be written");
}

impl LockRecordings {
    pub(crate) fn new(began: SystemTime) -> Self {
        Self { began, count: AtomicUsize::new(0), open: Mutex::default() }
    }

    fn header(&self, group: &str, members: &[String], node: &str) -> Header {
        Header {
            recording: recording::VERSION,
            group: group.to_owned(),
            node: node.to_owned(),
            members: members.to_vec(),
            began: micros(self.began.duration_since(UNIX_EPOCH).unwrap_or_default()),
            partial: true,
        }
    }
}

impl NodeShell {
    /// Pass what the locks of a shard did to all that record it. The shard is locked.
    pub(crate) fn note_records(&self, shard: &mut Shard, out: &mut ShardEffects) {
        if self.recordings.count.load(Ordering::Relaxed) > 0 {
            let mut open = self.recordings.open.lock();
            for record in &out.records {
                for recording in open.values_mut().filter(|it| it.lock == record.lock) {
                    recording.note(self, shard.seating(), record);
                }
            }
        }
        if let Some(recorder) = &self.recorder {
            out.records.drain(..).for_each(|record| recorder.record(record));
        } else if let Some(record) = out.records.drain(..).next_back()
            && !self.is_recorded(self.shard_of(&record.lock))
        {
            shard.stop_recording();
        }
    }

    /// Whether a lock of this shard is still recorded.
    fn is_recorded(&self, shard: usize) -> bool {
        let now = self.now();
        let open = self.recordings.open.lock();
        let goes_on = |it: &OpenRecording| it.ended.is_none() && it.until > now;
        open.values().any(|it| goes_on(it) && self.shard_of(&it.lock) == shard)
    }

    /// Whether this lock is recorded by itself now.
    pub(crate) fn records(&self, lock: &Name) -> bool {
        let now = self.now();
        let open = self.recordings.open.lock();
        open.values().any(|it| it.lock == *lock && it.ended.is_none() && it.until > now)
    }

    /// Begin a recording, unless it has begun, and note the marker of a member.
    pub(crate) fn begin_recording(
        &self,
        order: &RecordOrder,
        from: Option<PeerId>,
    ) -> Result<(), RecordError> {
        let RecordOrder { id, lock, for_ms } = order;
        let mut shard = self.shard(self.shard_of(lock));
        let now = self.now();
        let mut open = self.recordings.open.lock();
        if let Some(known) = open.get_mut(id) {
            known.begun.extend(from);
            return Ok(());
        }
        open.retain(|_, it| it.until + KEPT > now);
        if open.len() >= MOST {
            return Err(RecordError::Busy);
        }
        let seating = shard.seating();
        let time = Duration::from_millis((*for_ms).into()).min(LONGEST_RECORDING);
        let mut recording = OpenRecording {
            lock: lock.clone(),
            until: now + time,
            begun: Vec::from_iter(from),
            text: Vec::new(),
            ended: None,
        };
        let header = self.recordings.header(&self.group, &seating.members, self.name());
        put(&mut recording.text, &header);
        if let Some(standing) = shard.standing(lock, now) {
            recording.note(self, seating, &standing);
        }
        open.insert(*id, recording);
        self.recordings.count.store(open.len(), Ordering::Relaxed);
        drop(open);
        shard.record();
        // The marker stands between what the lock has sent before and what it sends from now on.
        let peers = self.peers();
        let others = || peers.iter().filter(|peer| peer.is_up() && peer.speaks(Versions::SERVICE));
        let marker = Message::Ask(0, Question::Record(order.clone()));
        others().for_each(|peer| self.queue(peer.id(), &marker));
        drop(shard);
        others().for_each(|peer| peer.flush());
        Ok(())
    }

    /// End a recording, and take what was recorded.
    pub(crate) fn end_recording(&self, id: u64) -> Option<Vec<u8>> {
        let lock = self.recordings.open.lock().get(&id)?.lock.clone();
        let index = self.shard_of(&lock);
        let mut shard = self.shard(index);
        let mut open = self.recordings.open.lock();
        let recording = open.remove(&id)?;
        self.recordings.count.store(open.len(), Ordering::Relaxed);
        drop(open);
        if self.recorder.is_none() && !self.is_recorded(index) {
            shard.stop_recording();
        }
        drop(shard);
        let mut text = recording.text;
        put(&mut text, &EndLine { end: recording.ended.unwrap_or(End::Time) });
        Some(text)
    }

    /// Record a lock at all members that can be reached.
    pub(crate) async fn record_lock(
        &self,
        lock: &Name,
        time: Duration,
    ) -> Result<LockRecording, RecordError> {
        let time = time.min(LONGEST_RECORDING);
        let id = RandomState::new().hash_one(lock);
        let for_ms = time.as_millis() as u32;
        self.begin_recording(&RecordOrder { id, lock: lock.clone(), for_ms }, None)?;
        let members = self.members();
        tokio::time::sleep(time).await;
        let (heard, _) = self.ask_each(Question::Recorded(id)).await;
        let mut texts: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (node, answer, _) in heard {
            if let Answer::Recording(Some(text)) = answer {
                texts.insert(self.peer_name(node), text);
            }
        }
        texts.extend(self.end_recording(id).map(|text| (self.name().to_owned(), text)));
        let (mut text, mut missing) = (Vec::new(), Vec::new());
        for member in &members {
            if let Some(recorded) = texts.remove(member) {
                text.extend(recorded);
                continue;
            }
            put(&mut text, &self.recordings.header(&self.group, &members, member));
            put(&mut text, &EndLine { end: End::Missing });
            missing.push(member.clone());
        }
        // Members are trusted, but what one of them sends is still only bytes.
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(LockRecording { text, missing })
    }
}
