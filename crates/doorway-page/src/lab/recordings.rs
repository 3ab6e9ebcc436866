//! Recordings of real nodes that the live page has handed over, to be opened in the laboratory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use doorway_lab::Trace;
use doorway_lab::recording::{self, File};
use serde::Deserialize;

use super::problem::Problem;

/// How many recordings are remembered. An older one is forgotten.
const MOST: usize = 8;

/// How many events of a recording are shown.
const EVENTS: usize = 100_000;

/// The largest call that hands over a recording. Each member records 256 kB at most, and quotation
/// marks are doubled on the way: enough for the recordings of ten members.
pub(super) const BODY: usize = 4 << 20;

/// What the live page hands over.
#[derive(Deserialize)]
pub(super) struct RecordingUpload {
    /// The lock.
    lock: String,
    /// The lines of all members.
    text: String,
}

/// The recordings that the server remembers.
#[derive(Default)]
pub(super) struct Recordings(Mutex<StoredRecordings>);

#[derive(Default)]
struct StoredRecordings {
    /// The number of the last recording.
    last: u64,
    /// The recordings with their numbers, the oldest first.
    traces: VecDeque<(u64, Arc<Trace>)>,
}

impl Recordings {
    /// Read and remember a recording. Returns its number.
    pub(super) fn put(&self, handed: RecordingUpload) -> Result<u64, Problem> {
        let file = File { name: "the recording".to_owned(), text: handed.text };
        let read = recording::read(&[file], Some(&handed.lock));
        let mut trace = read.map_err(|why| Problem::bad(why.to_string()))?.trace;
        trace.keep_first(EVENTS);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let number = kept.last;
        kept.traces.push_back((number, Arc::new(trace)));
        if kept.traces.len() > MOST {
            kept.traces.pop_front();
        }
        Ok(number)
    }

    /// A recording by its number.
    pub(super) fn get(&self, number: &str) -> Result<Arc<Trace>, Problem> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.traces.iter().find(|(known, _)| known.to_string() == number);
        found.map(|(_, trace)| Arc::clone(trace)).ok_or_else(|| {
            let why = "this recording is forgotten: record the lock again on the live page";
            Problem(axum::http::StatusCode::NOT_FOUND, why.to_owned())
        })
    }
}
