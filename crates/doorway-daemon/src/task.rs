//! Tasks of the runtime.

use doorway_node::members::BoxedFuture;

/// Hide the type of a future that becomes a task.
///
/// The runtime's part of a task is compiled for each type of future, and for each kind of runtime.
/// With this it is compiled once for all tasks. A task then takes one allocation more, so what runs
/// for each request of a client does without.
pub(crate) fn boxed<T>(task: impl Future<Output = T> + Send + 'static) -> BoxedFuture<'static, T> {
    Box::pin(task)
}
