//! Work that takes a while has few places. A job sends lines of JSON from a thread of its own, and
//! closing the answer stops it. Other long work gives one answer at its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::Problem;

/// How many jobs run at once.
const JOBS: usize = 2;

/// How long a new job waits for a place. A job that was stopped leaves its place when it next looks
/// for its reader.
const PATIENCE: Duration = Duration::from_secs(3);

/// The time between two lines about progress.
const PACE: Duration = Duration::from_millis(100);

/// The places for jobs.
#[derive(Clone, Debug)]
pub(crate) struct Jobs(Arc<Semaphore>);

impl Default for Jobs {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(JOBS)))
    }
}

/// The reader of a job's lines, as the job sees it.
pub(crate) struct Reader {
    lines: Sender<Bytes>,
    told: Instant,
}

impl Reader {
    /// Send a line. Returns whether the reader is still there.
    pub(crate) fn tell(&self, line: &impl Serialize) -> bool {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        self.lines.blocking_send(Bytes::from(text)).is_ok()
    }

    /// Send a line about progress, unless one was sent just now. Returns whether the reader is
    /// still there.
    pub(crate) fn progress<L: Serialize>(&mut self, line: impl FnOnce() -> L) -> bool {
        if self.told.elapsed() < PACE {
            return !self.lines.is_closed();
        }
        self.told = Instant::now();
        self.tell(&line())
    }
}

/// Run something that may take some milliseconds away from the threads that answer.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let failed = |_| {
        Problem(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the laboratory failed at this call; please report it with the link".to_owned(),
        )
    };
    // Without the type of the work, the runtime's part of this is compiled once for each result.
    let work: Box<dyn FnOnce() -> Result<T, Problem> + Send> = Box::new(work);
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

impl Jobs {
    /// A place for work that takes a while.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = tokio::time::timeout(PATIENCE, self.0.clone().acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or_else(|| {
            let why = format!("{JOBS} jobs are running; stop one of them or wait");
            Problem(StatusCode::TOO_MANY_REQUESTS, why)
        })
    }

    /// Run something in one of the places, and answer when it has ended.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let place = self.place().await?;
        aside(move || {
            // The work goes on if the caller is gone, and keeps its place.
            let _place = place;
            work()
        })
        .await
    }

    /// Run `work` on a thread of its own and answer with its lines.
    pub(crate) async fn run(
        &self,
        work: impl FnOnce(&mut Reader) -> Result<(), String> + Send + 'static,
    ) -> Result<Response, Problem> {
        let place = self.place().await?;
        let (lines, reader) = channel::<Bytes>(16);
        tokio::task::spawn_blocking(move || {
            let mut reader = Reader { lines, told: Instant::now() };
            if let Err(why) = work(&mut reader) {
                reader.tell(&json!({ "error": why }));
            }
            drop(place);
        });
        let next = |mut reader: Receiver<Bytes>| async move {
            let line = reader.recv().await?;
            Some((Ok::<_, std::io::Error>(line), reader))
        };
        let body = Body::from_stream(stream::unfold(reader, next));
        Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
    }
}
