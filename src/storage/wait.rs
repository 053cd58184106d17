//! How synchronous code waits for a store, which answers asynchronously.
//!
//! Sources are read by plain iterators, on the query's thread or on a worker of the runtime that runs its plans. The
//! waiting thread is given up by the runtime meanwhile, so that the answer can come also where all workers wait.

use std::future::Future;

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::error::{Error, Result};

/// The runtime on which a store's connections live.
#[derive(Debug, Clone)]
pub struct Waiter {
    runtime: Handle,
}

impl Waiter {
    /// Of the runtime that the caller has entered.
    ///
    /// # Errors
    /// Internal: there is none.
    pub fn of_this_thread() -> Result<Self> {
        let runtime = Handle::try_current();
        runtime
            .map(|runtime| Waiter { runtime })
            .map_err(|e| Error::internal(format!("a store outside a runtime: {e}")))
    }

    /// Runs something to its end.
    pub fn wait<T: Send>(&self, future: impl Future<Output = T> + Send) -> T {
        match Handle::try_current().map(|handle| handle.runtime_flavor()) {
            // A runtime of one thread can't be left while it runs us.
            Ok(RuntimeFlavor::CurrentThread) => std::thread::scope(|scope| {
                let waiting = scope.spawn(|| self.runtime.block_on(future));
                waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }),
            Ok(_) => tokio::task::block_in_place(|| self.runtime.block_on(future)),
            Err(_) => self.runtime.block_on(future),
        }
    }

    /// Begins something that is waited for later.
    pub fn begin<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Begun<T> {
        Begun(self.runtime.spawn(future))
    }

    /// Begins something that nobody waits for.
    pub fn detach(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(future));
    }
}

/// Something that runs meanwhile. It ends when nobody wants it any more.
#[derive(Debug)]
pub struct Begun<T>(tokio::task::JoinHandle<T>);

impl<T: Send> Begun<T> {
    /// Waits for it.
    ///
    /// # Errors
    /// Cancelled: the runtime has ended meanwhile.
    pub fn end(mut self, waiter: &Waiter) -> Result<T> {
        let ended = waiter.wait(&mut self.0);
        ended.map_err(|e| Error::Cancelled { message: format!("reading ahead was given up: {e}") })
    }
}

impl<T> Drop for Begun<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_on_every_kind_of_thread() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let waiter = {
            let _entered = runtime.enter();
            Waiter::of_this_thread().unwrap()
        };
        assert!(Waiter::of_this_thread().is_err());
        let answer = |waiter: &Waiter| waiter.wait(async { tokio::task::spawn(async { 7 }).await.unwrap_or_default() });
        assert_eq!(answer(&waiter), 7, "a thread of its own");
        assert_eq!(runtime.block_on(async { answer(&waiter) }), 7, "the thread that runs the runtime");
        let (on_worker, again) = (waiter.clone(), waiter.clone());
        assert_eq!(runtime.block_on(runtime.spawn(async move { answer(&on_worker) })).unwrap(), 7, "its only worker");
        let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(single.block_on(async { answer(&again) }), 7, "another runtime");
        assert_eq!(waiter.begin(async { 8 }).end(&waiter).unwrap(), 8);
    }
}
