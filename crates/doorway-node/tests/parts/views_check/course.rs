//! What leads a node from view to view: the machine itself, and a sketch of it that can have flaws.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;

use doorway_core::NodeId;
use doorway_node::messages::{Flush, HeldLock};
use doorway_node::views::{View, Views};

use super::world::Flaw;

/// The views of a node, as its driver sees them.
pub(crate) trait Course: Clone + Debug + Hash {
    fn new(me: usize, size: usize, epoch: u64, flaw: Option<Flaw>) -> Self;
    fn learn(&mut self, epochs: &[u64]) -> Result<(), String>;
    fn raise(&mut self, epoch: u64);
    fn pending(&self) -> Option<Vec<u64>>;
    fn stopped(&mut self, epochs: &[u64], held: Vec<HeldLock>) -> Vec<Flush>;
    fn flushes(&self) -> Vec<Flush>;
    fn flush(&mut self, from: usize, flush: Flush) -> Result<(), String>;
    fn ready(&mut self) -> Option<(Vec<u64>, Vec<Vec<HeldLock>>)>;
    fn epochs(&self) -> &[u64];
}

impl Course for Views {
    fn new(me: usize, size: usize, epoch: u64, _flaw: Option<Flaw>) -> Self {
        Self::new(NodeId::at(me), size, epoch)
    }

    fn learn(&mut self, epochs: &[u64]) -> Result<(), String> {
        Self::learn(self, epochs).map(drop).map_err(|error| error.to_string())
    }

    fn raise(&mut self, epoch: u64) {
        Self::raise(self, epoch).expect("epochs are low here");
    }

    fn pending(&self) -> Option<Vec<u64>> {
        Self::pending(self).map(|view| view.epochs().to_vec())
    }

    fn stopped(&mut self, epochs: &[u64], held: Vec<HeldLock>) -> Vec<Flush> {
        let pending = Self::pending(self).filter(|view| view.epochs() == epochs);
        pending.map_or_else(Vec::new, |view: View| Self::stopped(self, &view, held))
    }

    fn flushes(&self) -> Vec<Flush> {
        Self::flushes(self)
    }

    fn flush(&mut self, from: usize, flush: Flush) -> Result<(), String> {
        Self::flush(self, NodeId::at(from), flush).map(drop).map_err(|error| error.to_string())
    }

    fn ready(&mut self) -> Option<(Vec<u64>, Vec<Vec<HeldLock>>)> {
        Self::ready(self).map(|started| (started.view.epochs().to_vec(), started.held))
    }

    fn epochs(&self) -> &[u64] {
        Self::epochs(self)
    }
}

/// A short sketch of the machine, for a node that may break a rule. Without a flaw it has as many
/// states as the machine itself.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Sketch {
    me: usize,
    flaw: Option<Flaw>,
    known: Vec<u64>,
    started: Option<Vec<u64>>,
    /// For each view, what each member has flushed, this one included.
    flushed: BTreeMap<Vec<u64>, Vec<Option<Vec<HeldLock>>>>,
}

impl Sketch {
    fn advance(&mut self, epochs: Vec<u64>) {
        if epochs == self.known {
            return;
        }
        let old = std::mem::replace(&mut self.known, epochs);
        match self.flaw {
            Some(Flaw::Backwards) => {}
            Some(Flaw::OlderFlush) => {
                let mut flushed = std::mem::take(&mut self.flushed).remove(&old);
                if let Some(flushed) = &mut flushed {
                    flushed[self.me] = None;
                    self.flushed.insert(self.known.clone(), flushed.clone());
                }
            }
            _ => self.flushed.clear(),
        }
    }

    fn record(&mut self, epochs: Vec<u64>, node: usize, held: Vec<HeldLock>) {
        let size = self.known.len();
        self.flushed.entry(epochs).or_insert_with(|| vec![None; size])[node] = Some(held);
    }

    fn own(&self) -> Option<&Vec<HeldLock>> {
        self.flushed.get(&self.known)?[self.me].as_ref()
    }

    fn is_ready(&self, epochs: &Vec<u64>, flushed: &[Option<Vec<HeldLock>>]) -> bool {
        let needed = match self.flaw {
            Some(Flaw::Alone) => 1,
            Some(Flaw::Majority) => self.known.len() / 2 + 1,
            _ => self.known.len(),
        };
        let newer = self.started.as_ref().is_none_or(|started| started < epochs);
        newer && flushed[self.me].is_some() && flushed.iter().flatten().count() >= needed
    }
}

impl Course for Sketch {
    fn new(me: usize, size: usize, epoch: u64, flaw: Option<Flaw>) -> Self {
        let mut known = vec![0; size];
        known[me] = epoch;
        Self { me, flaw, known, started: None, flushed: BTreeMap::new() }
    }

    fn learn(&mut self, epochs: &[u64]) -> Result<(), String> {
        let own = self.known[self.me];
        let mut merged: Vec<u64> =
            self.known.iter().zip(epochs).map(|(ours, theirs)| *ours.max(theirs)).collect();
        merged[self.me] = own;
        self.advance(merged);
        Ok(())
    }

    fn raise(&mut self, epoch: u64) {
        let mut raised = self.known.clone();
        raised[self.me] = epoch;
        self.advance(raised);
    }

    fn pending(&self) -> Option<Vec<u64>> {
        let started = self.started.as_ref() == Some(&self.known);
        let pending = !self.known.contains(&0) && !started && self.own().is_none();
        pending.then(|| self.known.clone())
    }

    fn stopped(&mut self, epochs: &[u64], held: Vec<HeldLock>) -> Vec<Flush> {
        if Course::pending(self).as_deref() != Some(epochs) {
            return Vec::new();
        }
        self.record(epochs.to_vec(), self.me, held);
        Course::flushes(self)
    }

    fn flushes(&self) -> Vec<Flush> {
        let flush = |held: &Vec<HeldLock>| Flush {
            epochs: self.known.clone(),
            part: 0,
            parts: 1,
            held: held.clone(),
        };
        self.own().map(flush).into_iter().collect()
    }

    fn flush(&mut self, from: usize, flush: Flush) -> Result<(), String> {
        Course::learn(self, &flush.epochs)?;
        let view = match self.flaw {
            Some(Flaw::Backwards) => flush.epochs,
            Some(Flaw::OlderFlush) => self.known.clone(),
            _ if flush.epochs == self.known => flush.epochs,
            _ => return Ok(()),
        };
        if self.started.as_ref().is_none_or(|started| *started < view) {
            self.record(view, from, flush.held);
        }
        Ok(())
    }

    fn ready(&mut self) -> Option<(Vec<u64>, Vec<Vec<HeldLock>>)> {
        let mut views = self.flushed.iter();
        let (epochs, _) = views.find(|(epochs, flushed)| self.is_ready(epochs, flushed))?;
        let epochs = epochs.clone();
        let flushed = self.flushed.remove(&epochs)?;
        self.flushed.retain(|view, _| *view > epochs);
        self.started = Some(epochs.clone());
        Some((epochs, flushed.into_iter().map(Option::unwrap_or_default).collect()))
    }

    fn epochs(&self) -> &[u64] {
        &self.known
    }
}
