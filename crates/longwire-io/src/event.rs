//! Events that one thread signals and another waits for.

#[cfg(feature = "loom")]
pub use modelled::Event;
#[cfg(not(feature = "loom"))]
pub use real::Event;

#[cfg(not(feature = "loom"))]
mod real {
    use std::os::fd::{AsFd, BorrowedFd};

    use nix::sys::eventfd::{EfdFlags, EventFd};

    /// An event descriptor: readable once it has been signalled, until it is
    /// cleared.
    #[derive(Debug)]
    pub struct Event(EventFd);

    impl Event {
        /// Creates an event that has not been signalled.
        ///
        /// # Errors
        /// If the system provides no descriptor.
        pub fn new() -> nix::Result<Event> {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            Ok(Event(EventFd::from_flags(flags)?))
        }

        /// Makes the descriptor readable.
        pub fn signal(&self) {
            // It fails only if the counter is full: then it is readable.
            let _ = self.0.write(1);
        }

        /// Removes all signals so far. Does not wait.
        pub fn clear(&self) {
            // It fails only if there was none.
            let _ = self.0.read();
        }
    }

    impl AsFd for Event {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

/// The same for loom's models: waiting is a call instead of a descriptor.
#[cfg(feature = "loom")]
mod modelled {
    use std::os::fd::{AsFd, BorrowedFd};

    use loom::sync::{Condvar, Mutex};

    /// An event that loom's threads can wait for.
    #[derive(Debug)]
    pub struct Event {
        signalled: Mutex<bool>,
        changed: Condvar,
    }

    impl Event {
        /// Creates an event that has not been signalled.
        ///
        /// # Errors
        /// Never.
        pub fn new() -> nix::Result<Event> {
            Ok(Event {
                signalled: Mutex::new(false),
                changed: Condvar::new(),
            })
        }

        /// Wakes the thread that waits, or the next one that does.
        pub fn signal(&self) {
            *self.signalled.lock().unwrap() = true;
            self.changed.notify_one();
        }

        /// Removes all signals so far. Does not wait.
        pub fn clear(&self) {
            *self.signalled.lock().unwrap() = false;
        }

        /// Waits for a signal, without a timeout. Leaves it signalled, like a
        /// descriptor that was polled.
        pub fn wait(&self) {
            let mut signalled = self.signalled.lock().unwrap();
            while !*signalled {
                signalled = self.changed.wait(signalled).unwrap();
            }
        }
    }

    impl AsFd for Event {
        fn as_fd(&self) -> BorrowedFd<'_> {
            unreachable!("loom's models wait without descriptors")
        }
    }
}
