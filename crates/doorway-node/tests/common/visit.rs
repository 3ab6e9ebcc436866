//! A client inside a lock, under the eyes of a referee.

use std::sync::Arc;

use doorway_node::OwnedGuard;
use parking_lot::Mutex;

use super::book::Book;

/// Somebody inside. However this ends, the book hears of it before the lock is free again.
pub(crate) struct Visit {
    book: Arc<Mutex<Book>>,
    holder: u64,
    guard: OwnedGuard,
}

impl Visit {
    /// Somebody has come inside a lock of so many permits.
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

/// Nothing was wrong, and nobody is inside any more.
pub(crate) fn assert_fair(book: &Mutex<Book>) {
    let book = book.lock();
    assert!(book.faults.is_empty(), "{} faults: {:?}", book.faults.len(), book.faults.first());
    assert!(book.held().is_empty(), "still held: {:?}", book.held());
}
