//! The stream of events about grants, requests that wait, and views.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{Extension, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use doorway_protocol::{Name, NamePattern};
use doorway_sessions::principal::{Principal, Right};
use futures_util::stream::{Stream, unfold};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::api::{Api, Problems};
use super::extract::UrlQuery;
use super::gate::Caller;
use super::problem::Problem;
use super::schemas::{EventsQuery, GrantEvent, MissedEvents, ViewEvent};
use crate::service::{self, EventKind, Listener};

/// How often a heartbeat is sent when nothing happens, so that a dead connection is noticed.
const QUIET: Duration = Duration::from_secs(15);

/// Stream what happens at this node.
///
/// The response is a stream of server-sent events: `waiting` and `gave-up` for requests, `granted`,
/// `released` and `lost` for grants, each with a `GrantEvent` as JSON, and `view` with a
/// `ViewEvent` when a view begins or ends. `lock` and `kind` select some of them. If the client
/// reads too slowly, some events are dropped, and the client gets `missed` with their number. Only
/// locks that the client may inspect are reported.
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
    let kinds = kinds(query.kind.as_deref())?;
    let listener = api.service.listen(&caller.principal)?;
    let locks = query.lock.as_deref().map(NamePattern::new);
    let views = kinds.contains(&VIEW).then(|| api.service.node().views());
    let events = EventStream { listener, views, principal: caller.principal, locks, kinds };
    let stream = unfold(events, |mut events| async {
        let event = events.next().await?;
        Some((Ok(event), events))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(QUIET)))
}

/// The kind of event that tells of a view.
const VIEW: &str = "view";

/// The kinds of events that a client can select.
const KINDS: [&str; 6] = ["waiting", "gave-up", "granted", "released", "lost", VIEW];

/// The kinds that a client asks for; all of them if it names none.
fn kinds(asked: Option<&str>) -> Result<Vec<&'static str>, Problem> {
    let Some(asked) = asked else { return Ok(KINDS.to_vec()) };
    let known = |name: &str| KINDS.into_iter().find(|kind| *kind == name);
    let unknown = |name: &str| {
        let text = format!("`kind` has no '{name}'; it has {}", KINDS.join(", "));
        Problem::invalid(text)
    };
    asked.split(',').map(|name| known(name).ok_or_else(|| unknown(name))).collect()
}

/// One stream of events.
struct EventStream {
    listener: Listener,
    /// News of views; none if the client does not ask for them, or when the node has ended.
    views: Option<watch::Receiver<Option<u64>>>,
    principal: Arc<Principal>,
    /// Which locks; all of them without a pattern.
    locks: Option<NamePattern>,
    /// Which kinds of events.
    kinds: Vec<&'static str>,
}

impl EventStream {
    /// The next event; `None` if the service has stopped.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let changed = async {
                match &mut self.views {
                    Some(views) => views.changed().await.map(|()| *views.borrow_and_update()),
                    None => std::future::pending().await,
                }
            };
            let happened = tokio::select! {
                view = changed => {
                    if let Ok(view) = view {
                        return Some(line(VIEW, &ViewEvent { view, at_ms: now_ms() }));
                    }
                    self.views = None;
                    continue;
                }
                happened = self.listener.events.recv() => happened,
            };
            match happened {
                Ok(event) if self.wants(&event) => return Some(sse_event(&event)),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    return Some(line("missed", &MissedEvents { missed }));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn wants(&self, event: &service::Event) -> bool {
        let lock: &Name = &event.lock;
        self.kinds.contains(&name(event.kind))
            && self.locks.as_ref().is_none_or(|pattern| pattern.matches(lock))
            && self.principal.rights.may(Right::Inspect, lock)
    }
}

fn sse_event(event: &service::Event) -> Event {
    let news = GrantEvent {
        lock: event.lock.to_string(),
        fence: event.fence,
        session: event.session.0,
        client: event.client.to_string(),
        at_ms: since_1970(event.at),
    };
    line(name(event.kind), &news)
}

fn name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Waiting => "waiting",
        EventKind::GaveUp => "gave-up",
        EventKind::Granted => "granted",
        EventKind::Released => "released",
        EventKind::Lost => "lost",
    }
}

fn now_ms() -> u64 {
    since_1970(SystemTime::now())
}

fn since_1970(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

fn line(kind: &str, data: &impl Serialize) -> Event {
    let text = serde_json::to_string(data).expect("strings and numbers can be written as JSON");
    Event::default().event(kind).data(text)
}
