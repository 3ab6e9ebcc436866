//! A store in the memory of the test, which all nodes share. Each node can be cut off from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorway_node::members::{
    Answer, BoxedFuture, BoxedStream, Caller, Command, Record, SeatId, StoreHealth, Unsure,
    ViewStore,
};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::sleep;

/// The record, and the stores that have to be shown it.
pub(crate) struct Register {
    record: Mutex<Record>,
    stores: Mutex<Vec<Arc<RegisterStore>>>,
}

/// The store of one node.
pub(crate) struct RegisterStore {
    seat: SeatId,
    register: Arc<Register>,
    shown: watch::Sender<Option<Arc<Record>>>,
    cut: AtomicBool,
}

impl Register {
    pub(crate) fn new(record: Record) -> Arc<Self> {
        Arc::new(Self { record: Mutex::new(record), stores: Mutex::default() })
    }

    /// The store of the next process at a seat.
    pub(crate) fn store(self: &Arc<Self>, seat: SeatId) -> Arc<RegisterStore> {
        let record = Arc::new(self.record.lock().clone());
        let store = Arc::new(RegisterStore {
            seat,
            register: Arc::clone(self),
            shown: watch::Sender::new(Some(record)),
            cut: AtomicBool::new(false),
        });
        self.stores.lock().push(Arc::clone(&store));
        store
    }

    pub(crate) fn record(&self) -> Record {
        self.record.lock().clone()
    }

    pub(crate) fn apply(&self, command: &Command) -> Answer {
        let mut record = self.record.lock();
        let answer = record.apply(command);
        let shown = Arc::new(record.clone());
        for store in self.stores.lock().iter().filter(|store| !store.is_cut()) {
            store.shown.send_replace(Some(Arc::clone(&shown)));
        }
        answer
    }
}

impl RegisterStore {
    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    /// Cut the node off from the register, or connect it again.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
        if !cut {
            self.shown.send_replace(Some(Arc::new(self.register.record())));
        }
    }
}

impl ViewStore for RegisterStore {
    fn seat(&self) -> SeatId {
        self.seat
    }

    fn watch(&self) -> watch::Receiver<Option<Arc<Record>>> {
        self.shown.subscribe()
    }

    fn put(&self, command: Command) -> BoxedFuture<'_, Result<Answer, Unsure>> {
        Box::pin(async move {
            sleep(Duration::from_millis(2)).await;
            if self.is_cut() {
                sleep(Duration::from_millis(300)).await;
                return Err(Unsure("the register is out of reach".to_owned()));
            }
            Ok(self.register.apply(&command))
        })
    }

    fn leads(&self) -> bool {
        !self.is_cut()
    }

    fn serve(&self, _stream: BoxedStream, _caller: Caller) -> BoxedFuture<'static, ()> {
        Box::pin(async {})
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }
}
