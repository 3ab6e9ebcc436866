//! A client inside a lock, as a referee records it.

use std::sync::Arc;

use doorway_node::OwnedGuard;
use parking_lot::Mutex;

use super::book::Book;

/// A client that is inside. However this ends, the exit is recorded before the lock is released.
pub(crate) struct Visit {
    book: Arc<Mutex<Book>>,
    holder: u64,
    guard: OwnedGuard,
}

impl Visit {
    /// Record an entry into a lock with this many permits.
    pub(crate) fn begin(
        book: &Arc<Mutex<Book>>,
        holder: u64,
        guard: OwnedGuard,
        shares: bool,
        permits: usize,
    ) -> Self {
        let (name, fence) = (guard.handle().name().as_str(), guard.fence().get());
        book.lock().enter(holder, name, shares, fence, permits);
        Self { book: Arc::clone(book), holder, guard }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.book.lock().leave(self.holder, self.guard.handle().name().as_str());
    }
}

/// Check that no promise was broken and that no client is inside any more.
pub(crate) fn assert_fair(book: &Mutex<Book>) {
    let book = book.lock();
    assert!(book.faults.is_empty(), "{} faults: {:?}", book.faults.len(), book.faults.first());
    assert!(book.held().is_empty(), "still held: {:?}", book.held());
}
