//! A store in the memory of the test, which all nodes share. Each node can be cut off from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorway_node::members::{
    Answer, BoxedFuture, BoxedStream, Caller, Command, GroupState, Holds, Record, RecordError,
    RuleTables, SeatId, StoreHealth, UnknownOutcome, ViewStore,
};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::sleep;

/// What the group has agreed on, and the stores that have to be shown it.
pub(crate) struct Register {
    state: Mutex<GroupState>,
    stores: Mutex<Vec<Arc<RegisterStore>>>,
}

/// The store of one node.
pub(crate) struct RegisterStore {
    seat: SeatId,
    register: Arc<Register>,
    shown: watch::Sender<Option<Arc<Record>>>,
    holds: watch::Sender<Arc<Holds>>,
    rules: watch::Sender<Arc<RuleTables>>,
    cut: AtomicBool,
    /// The group takes this machine for a removed one, which may not drop holds.
    removed: AtomicBool,
}

impl Register {
    pub(crate) fn new(state: GroupState) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), stores: Mutex::default() })
    }

    /// The store of the next process at a seat.
    pub(crate) fn store(self: &Arc<Self>, seat: SeatId) -> Arc<RegisterStore> {
        let GroupState { record, holds, rules, .. } = self.state.lock().clone();
        let store = Arc::new(RegisterStore {
            seat,
            register: Arc::clone(self),
            shown: watch::Sender::new(Some(record)),
            holds: watch::Sender::new(holds),
            rules: watch::Sender::new(rules),
            cut: AtomicBool::new(false),
            removed: AtomicBool::new(false),
        });
        self.stores.lock().push(Arc::clone(&store));
        store
    }

    pub(crate) fn record(&self) -> Record {
        Record::clone(&self.state.lock().record)
    }

    pub(crate) fn holds(&self) -> Arc<Holds> {
        Arc::clone(&self.state.lock().holds)
    }

    pub(crate) fn apply(&self, command: &Command) -> Answer {
        let mut state = self.state.lock();
        let answer = state.apply(command);
        for store in self.stores.lock().iter().filter(|store| !store.is_cut()) {
            store.show(&state);
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
            self.show(&self.register.state.lock());
        }
    }

    /// Refuse to drop holds on behalf of the node, or do it again.
    pub(crate) fn refuse_drops(&self, refuse: bool) {
        self.removed.store(refuse, Ordering::SeqCst);
    }

    fn show(&self, state: &GroupState) {
        self.holds.send_replace(Arc::clone(&state.holds));
        self.rules.send_if_modified(|known| {
            let changed = *known != state.rules;
            known.clone_from(&state.rules);
            changed
        });
        self.shown.send_replace(Some(Arc::clone(&state.record)));
    }
}

impl ViewStore for RegisterStore {
    fn seat(&self) -> SeatId {
        self.seat
    }

    fn watch(&self) -> watch::Receiver<Option<Arc<Record>>> {
        self.shown.subscribe()
    }

    fn holds(&self) -> watch::Receiver<Arc<Holds>> {
        self.holds.subscribe()
    }

    fn rules(&self) -> watch::Receiver<Arc<RuleTables>> {
        self.rules.subscribe()
    }

    fn put(&self, command: Command) -> BoxedFuture<'_, Result<Answer, UnknownOutcome>> {
        Box::pin(async move {
            sleep(Duration::from_millis(2)).await;
            if self.is_cut() {
                sleep(Duration::from_millis(300)).await;
                return Err(UnknownOutcome("the register is out of reach".to_owned()));
            }
            if matches!(command, Command::Drop(_)) && self.removed.load(Ordering::SeqCst) {
                return Ok(Answer::Refused(RecordError::UnknownSeat));
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
