//! The threads of a store.

use std::thread;

use doorway_node::members::BoxedFuture;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::OpenError;

/// Open a store in the thread `members`, which goes on until the store is closed. `build` returns
/// the store, and a future that closes it when it has ended.
pub(crate) async fn in_own_thread<S, B, C>(
    build: impl FnOnce() -> B + Send + 'static,
) -> Result<S, OpenError>
where
    S: Send + 'static,
    B: Future<Output = Result<(S, C), OpenError>>,
    C: Future<Output = ()>,
{
    let (sender, opened) = oneshot::channel();
    let failed = |error: std::io::Error| OpenError::Start(error.to_string());
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let run = move || {
        runtime.block_on(async {
            match build().await {
                Ok((store, closing)) => {
                    let _ = sender.send(Ok(store));
                    closing.await;
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                }
            }
        });
    };
    thread::Builder::new().name("members".to_owned()).spawn(run).map_err(failed)?;
    let ended = || OpenError::Start("its thread has ended".to_owned());
    opened.await.map_err(|_| ended())?
}

/// Start the thread `members-disk`.
pub(crate) fn start_disk_thread(
    writing: impl Future<Output = ()> + Send + 'static,
) -> Result<(), OpenError> {
    let failed = |error: std::io::Error| OpenError::Start(error.to_string());
    let runtime = Builder::new_current_thread().enable_time().build().map_err(failed)?;
    let run = move || runtime.block_on(writing);
    thread::Builder::new().name("members-disk".to_owned()).spawn(run).map_err(failed)?;
    Ok(())
}

/// Serve a connection in the runtime of the store. It ends when the future is dropped.
pub(crate) fn serve_in(
    runtime: &Handle,
    served: BoxedFuture<'static, ()>,
) -> BoxedFuture<'static, ()> {
    let (alive, dropped) = oneshot::channel::<()>();
    let task = runtime.spawn(async {
        tokio::select! {
            () = served => {}
            _ = dropped => {}
        }
    });
    Box::pin(async move {
        let _alive = alive;
        let _ = task.await;
    })
}
