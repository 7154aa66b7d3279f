//! Where tasks run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A task: runs to its end by itself.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts tasks on whatever executor the program has.
///
/// ```
/// use std::sync::Arc;
/// use steersman_smol::Spawner;
/// let executor = Arc::new(smol::Executor::new());
/// let spawner = Spawner::new({
///     let executor = Arc::clone(&executor);
///     move |task| executor.spawn(task).detach()
/// });
/// let (done, seen) = smol::channel::bounded(1);
/// spawner.spawn(async move { drop(done.send(7).await) });
/// assert_eq!(smol::block_on(executor.run(seen.recv())), Ok(7));
/// ```
#[derive(Clone)]
pub struct Spawner(Arc<dyn Fn(Task) + Send + Sync>);

impl Spawner {
    /// A spawner by a function that starts a task and does not wait for it, such as
    /// `|task| drop(tokio::spawn(task))`.
    pub fn new(start: impl Fn(Task) + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }

    /// Starts a task.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        (self.0)(Box::pin(task));
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawner")
    }
}
