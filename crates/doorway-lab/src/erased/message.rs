//! A message of any algorithm, as a value.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What [`AnyMessage`] needs of a message.
pub(crate) trait Body: Any + fmt::Debug + Send + Sync {
    fn compare(&self, other: &dyn Body) -> Ordering;
    fn hash_into(&self, hasher: &mut dyn Hasher);
}

impl<M: Ord + Hash + fmt::Debug + Send + Sync + 'static> Body for M {
    fn compare(&self, other: &dyn Body) -> Ordering {
        self.cmp(typed(other))
    }

    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
}

/// The message as a value of its own type.
///
/// # Panics
///
/// If it is a message of another algorithm. A world never mixes two algorithms.
fn typed<M: 'static>(body: &dyn Body) -> &M {
    let body: &dyn Any = body;
    body.downcast_ref().expect("all messages of a world have one type")
}

/// A message of some algorithm. Clones share it.
///
/// Messages compare, hash and print as the algorithm's own type does.
#[derive(Clone)]
pub struct AnyMessage(Arc<dyn Body>);

impl AnyMessage {
    /// Erase the type of `message`.
    pub(crate) fn new(message: impl Body) -> Self {
        Self(Arc::new(message))
    }

    /// The message as a value of its own type.
    ///
    /// # Panics
    ///
    /// If it has another type.
    pub fn get<M: 'static>(&self) -> &M {
        typed(&*self.0)
    }
}

impl fmt::Debug for AnyMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for AnyMessage {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.cmp(other).is_eq()
    }
}

impl Eq for AnyMessage {}

impl PartialOrd for AnyMessage {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AnyMessage {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare(&*other.0)
    }
}

impl Hash for AnyMessage {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}
