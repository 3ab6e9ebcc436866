//! The holder of a lock, for all watches of this node that look at it.
//!
//! Only the node with the holder knows at once that the holder changes. So the other nodes ask
//! again and again, and however many watches there are, one task for each lock does so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorway_protocol::Name;
use doorway_sessions::principal::{Principal, Rights};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::sleep;

use super::calls::PAUSE;
use super::home::Client;
use super::routes::{Owner, Routes};
use super::status::{Code, Status};
use crate::service::Event;
use crate::task::boxed;

/// The holder of a lock, or why it cannot be told.
type KnownHolder = Result<Option<Arc<Owner>>, Status>;

/// The locks whose holders somebody watches.
#[derive(Default)]
pub(super) struct Holders(Mutex<BTreeMap<Name, Arc<Poll>>>);

/// One task that asks for the holder of a lock.
struct Poll {
    /// How many questions have begun.
    begun: AtomicU64,
    /// A watch wants an answer now.
    wanted: Notify,
    /// The last answer, with the number of its question.
    known: watch::Sender<(u64, KnownHolder)>,
}

/// Follows the holder of a lock.
pub(super) struct HolderWatch {
    poll: Arc<Poll>,
    news: watch::Receiver<(u64, KnownHolder)>,
    /// Answers to questions up to this one may be older than what the client of the watch knows.
    old: u64,
}

impl HolderWatch {
    /// The holder, when somebody has looked again.
    pub(super) async fn next(&mut self) -> KnownHolder {
        loop {
            if self.news.changed().await.is_err() {
                return Err(Status::unexpected()); // The sender is in `poll`, so it is there.
            }
            let (number, holder) = &*self.news.borrow_and_update();
            if *number > self.old {
                return holder.clone();
            }
        }
    }

    /// Let the next answer be one to a question that has not begun.
    pub(super) fn renew(&mut self) {
        self.old = self.poll.begun.load(Ordering::SeqCst);
        self.poll.wanted.notify_one();
    }
}

impl Routes {
    /// Follow the holder of a lock, from now on.
    pub(super) fn follow(self: &Arc<Self>, lock: &Name) -> HolderWatch {
        let mut polls = self.holders.0.lock();
        let poll = polls.entry(lock.clone()).or_insert_with(|| {
            let poll = Arc::new(Poll {
                begun: AtomicU64::new(0),
                wanted: Notify::new(),
                known: watch::Sender::new((0, Ok(None))),
            });
            let events = self.service().events();
            let asking = ask(Arc::clone(self), lock.clone(), Arc::clone(&poll), events);
            tokio::spawn(boxed(asking));
            poll
        });
        let mut watch =
            HolderWatch { poll: Arc::clone(poll), news: poll.known.subscribe(), old: 0 };
        watch.renew();
        watch
    }
}

/// Ask for the holder of a lock while somebody follows it.
async fn ask(
    routes: Arc<Routes>,
    lock: Name,
    poll: Arc<Poll>,
    mut events: broadcast::Receiver<Event>,
) {
    // Each watch has looked at the rights of its client.
    let name = "the watches of a node".to_owned();
    let principal = Arc::new(Principal { name, uid: None, rights: Rights::all() });
    let node = Client { principal, remote: false };
    loop {
        let number = poll.begun.fetch_add(1, Ordering::SeqCst) + 1;
        match routes.owner_with_key(&node, &lock).await {
            // Nothing is told that is not known: the holder may be about to change, or its node may
            // be away.
            Err(status) if status.code == Code::Unavailable => {}
            holder => {
                drop(poll.known.send_replace((number, holder.map(|holder| holder.map(Arc::new)))));
            }
        }
        tokio::select! {
            () = changed(&mut events, &lock) => {}
            () = poll.wanted.notified() => {}
            () = sleep(PAUSE) => {}
            () = poll.known.closed() => {}
        }
        // While the table is locked, nobody begins to follow.
        let mut polls = routes.holders.0.lock();
        if poll.known.receiver_count() == 0 {
            polls.remove(&lock);
            return;
        }
    }
}

/// Wait until something has happened to a lock at this node.
async fn changed(events: &mut broadcast::Receiver<Event>, lock: &Name) {
    loop {
        match events.recv().await {
            Ok(event) if event.lock != *lock => {}
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return, // It may be missed.
            Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
        }
    }
}
