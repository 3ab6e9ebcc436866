//! Why a store has ended.

use std::sync::Arc;

use doorway_node::members::BoxedFuture;
use tokio::sync::watch;

/// Why a store has ended, if it has. Clones belong to one store.
#[derive(Clone, Debug)]
pub(crate) struct Ending(Arc<watch::Sender<Option<String>>>);

impl Ending {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// The store has failed. The first reason counts.
    pub(crate) fn end(&self, why: &str) {
        if self.set(why) {
            tracing::error!("the store of the group's record has ended: {why}");
        }
    }

    /// The store is not needed any more.
    pub(crate) fn close(&self) {
        self.set("it was closed");
    }

    fn set(&self, why: &str) -> bool {
        self.0.send_if_modified(|reason| {
            let is_first = reason.is_none();
            if is_first {
                *reason = Some(why.to_owned());
            }
            is_first
        })
    }

    pub(crate) fn reason(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Run a task until the store ends.
    pub(crate) fn spawn(&self, task: BoxedFuture<'static, ()>) {
        let ending = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = task => {}
                _ = ending.ended() => {}
            }
        });
    }

    /// Wait until the store has ended.
    pub(crate) async fn ended(&self) -> String {
        let mut reasons = self.0.subscribe();
        match reasons.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => String::new(),
        }
    }
}
