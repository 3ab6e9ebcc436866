//! Sessions that are silent for too long end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use doorway_protocol::Life;
use tokio::time::sleep;

use super::open::End;
use super::{Inner, Session};
use crate::clock::Moment;

/// No session ends sooner than this after it was heard of, so nobody has to look more often.
const OFTEN: Duration = Duration::from_millis(500);

/// After so much more than it meant to sleep, the process itself was held up.
const HELD_UP: Duration = Duration::from_millis(250);

/// Look at all sessions whenever the first of them may be too late.
pub(crate) async fn run(inner: Weak<Inner>) {
    let mut pause = OFTEN;
    loop {
        let slept = Moment::now();
        sleep(pause).await;
        if Moment::now().since(slept) > pause + HELD_UP {
            // What clients sent meanwhile has not been read yet. Waiting longer is always safe:
            // they count from earlier on.
            sleep(HELD_UP).await;
        }
        let Some(inner) = inner.upgrade() else { return };
        let next = look(&inner);
        let now = Moment::now();
        pause = next.map_or(OFTEN, |next| next.since(now)).clamp(Duration::from_millis(2), OFTEN);
    }
}

/// End those that are too late; when will the next one be?
fn look(inner: &Inner) -> Option<Moment> {
    let now = Moment::now();
    let (mut late, mut next) = (Vec::<Arc<Session>>::new(), None::<Moment>);
    for session in inner.sessions.lock().values() {
        match session.deadline() {
            Some(deadline) if deadline <= now => late.push(Arc::clone(session)),
            Some(deadline) => next = Some(next.map_or(deadline, |next| next.min(deadline))),
            None => {}
        }
    }
    for session in late {
        // Whoever inherited the connection of a process that is gone does not know of the session,
        // and holds it by keeping the connection open.
        let inherited = matches!(session.life, Life::Connection { inherited: true });
        let held_open = || session.is_orphan() && session.state().outbox.is_some();
        if inherited && !session.remote && held_open() {
            continue;
        }
        inner.end(&session, End::Silent);
    }
    next
}
