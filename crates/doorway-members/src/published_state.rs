//! What a store shows of the state on which its group has agreed.

use std::sync::Arc;

use doorway_node::members::{GroupState, Holds, Record, RuleTables};
use tokio::sync::watch;

/// The newest state, for all who watch it. Clones show the same state.
#[derive(Clone, Debug)]
pub(crate) struct PublishedState {
    records: watch::Sender<Option<Arc<Record>>>,
    holds: watch::Sender<Arc<Holds>>,
    rules: watch::Sender<Arc<RuleTables>>,
}

impl PublishedState {
    pub(crate) fn new(state: Option<&GroupState>) -> Self {
        let (record, holds, rules) = parts(state);
        Self {
            records: watch::Sender::new(record),
            holds: watch::Sender::new(holds),
            rules: watch::Sender::new(rules),
        }
    }

    pub(crate) fn records(&self) -> watch::Receiver<Option<Arc<Record>>> {
        self.records.subscribe()
    }

    pub(crate) fn holds(&self) -> watch::Receiver<Arc<Holds>> {
        self.holds.subscribe()
    }

    pub(crate) fn rules(&self) -> watch::Receiver<Arc<RuleTables>> {
        self.rules.subscribe()
    }

    /// Show a newer state. The record comes last, because a node starts a view only when it knows
    /// the holds and rules of its record.
    pub(crate) fn show(&self, state: Option<&GroupState>) {
        let (record, holds, rules) = parts(state);
        self.holds.send_if_modified(|known| {
            let changed = !Arc::ptr_eq(known, &holds);
            *known = holds;
            changed
        });
        self.rules.send_if_modified(|known| {
            let changed = *known != rules;
            *known = rules;
            changed
        });
        self.records.send_if_modified(|known| {
            let changed = *known != record;
            *known = record;
            changed
        });
    }
}

/// The record of a state, its holds and its rules.
fn parts(state: Option<&GroupState>) -> (Option<Arc<Record>>, Arc<Holds>, Arc<RuleTables>) {
    match state {
        Some(GroupState { record, holds, rules, .. }) => {
            (Some(Arc::clone(record)), Arc::clone(holds), Arc::clone(rules))
        }
        None => (None, Arc::default(), Arc::default()),
    }
}
