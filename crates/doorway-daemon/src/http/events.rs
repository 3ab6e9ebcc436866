//! The stream of events about grants.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::{Extension, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use doorway_protocol::{Name, NamePattern};
use futures_util::stream::{Stream, unfold};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;

use super::api::{Api, Problems};
use super::extract::UrlQuery;
use super::gate::Caller;
use super::problem::Problem;
use super::schemas::{EventsQuery, GrantEvent, MissedEvents};
use crate::principal::{Principal, Right};
use crate::service::{self, EventKind, Listener};

/// How often a heartbeat is sent when nothing happens, so that a dead connection is noticed.
const QUIET: Duration = Duration::from_secs(15);

/// Stream the grants, releases and losses at this node.
///
/// The response is a stream of server-sent events: `granted`, `released` and `lost`, each with a
/// `GrantEvent` as JSON. If the client reads too slowly, some events are dropped, and the client
/// gets `missed` with their number. Only locks that the client may inspect are reported.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "events", tag = "locks",
    params(EventsQuery),
    responses(
        (status = 200, description = "The stream of events.",
         content_type = "text/event-stream", body = String),
        Problems,
    ),
)]
pub(crate) async fn events(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    UrlQuery(query): UrlQuery<EventsQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let listener = api.service.listen(&caller.principal)?;
    let locks = query.lock.as_deref().map(NamePattern::new);
    let events = EventStream { listener, principal: caller.principal, locks };
    let stream = unfold(events, |mut events| async {
        let event = events.next().await?;
        Some((Ok(event), events))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(QUIET)))
}

/// One stream of events.
struct EventStream {
    listener: Listener,
    principal: Arc<Principal>,
    /// Which locks; all of them without a pattern.
    locks: Option<NamePattern>,
}

impl EventStream {
    /// The next event; `None` if the service has stopped.
    async fn next(&mut self) -> Option<Event> {
        loop {
            match self.listener.events.recv().await {
                Ok(event) if self.wants(&event.lock) => return Some(told(&event)),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    return Some(line("missed", &MissedEvents { missed }));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn wants(&self, lock: &Name) -> bool {
        let wanted = self.locks.as_ref().is_none_or(|pattern| pattern.matches(lock));
        wanted && self.principal.rights.may(Right::Inspect, lock)
    }
}

fn told(event: &service::Event) -> Event {
    let at = event.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let news = GrantEvent {
        lock: event.lock.to_string(),
        fence: event.fence,
        session: event.session.0,
        client: event.client.to_string(),
        at_ms: at.as_millis() as u64,
    };
    let kind = match event.kind {
        EventKind::Granted => "granted",
        EventKind::Released => "released",
        EventKind::Lost => "lost",
    };
    line(kind, &news)
}

fn line(kind: &str, data: &impl Serialize) -> Event {
    let text = serde_json::to_string(data).expect("strings and numbers can be written as JSON");
    Event::default().event(kind).data(text)
}
