//! A part of a state that the states before and after it have in common.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that several states share, until one of them changes it. Most steps of a search change
/// one part of a state, and would copy the other parts in vain.
#[derive(Clone, Debug, Hash)]
pub(super) struct CopyOnWrite<T>(Arc<T>);

impl<T> CopyOnWrite<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for CopyOnWrite<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}
