//! Events signalled between threads.

#[cfg(feature = "loom")]
pub use modelled::Event;
#[cfg(not(feature = "loom"))]
pub use real::Event;

#[cfg(not(feature = "loom"))]
mod real {
    use std::os::fd::{AsFd, BorrowedFd};

    use nix::sys::eventfd::{EfdFlags, EventFd};

    /// An event descriptor; readable from a signal until it is cleared.
    #[derive(Debug)]
    pub struct Event(EventFd);

    impl Event {
        /// Creates an unsignalled event.
        ///
        /// # Errors
        /// The system provides no descriptor.
        pub fn new() -> nix::Result<Event> {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            Ok(Event(EventFd::from_flags(flags)?))
        }

        /// Makes the descriptor readable.
        pub fn signal(&self) {
            // Fails only if the counter is full, when it is readable anyway.
            let _ = self.0.write(1);
        }

        /// Clears all signals, without blocking.
        pub fn clear(&self) {
            // Fails only without a signal.
            let _ = self.0.read();
        }
    }

    impl AsFd for Event {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

/// The same for loom's models: waiting is a call, without a descriptor.
#[cfg(feature = "loom")]
mod modelled {
    use std::os::fd::{AsFd, BorrowedFd};

    use loom::sync::{Condvar, Mutex};

    /// An event for loom's threads.
    #[derive(Debug)]
    pub struct Event {
        signalled: Mutex<bool>,
        changed: Condvar,
    }

    impl Event {
        /// Creates an unsignalled event.
        ///
        /// # Errors
        /// Never.
        pub fn new() -> nix::Result<Event> {
            Ok(Event {
                signalled: Mutex::new(false),
                changed: Condvar::new(),
            })
        }

        /// Wakes the waiting thread, or the next one to wait.
        pub fn signal(&self) {
            *self.signalled.lock().unwrap() = true;
            self.changed.notify_one();
        }

        /// Clears all signals, without blocking.
        pub fn clear(&self) {
            *self.signalled.lock().unwrap() = false;
        }

        /// Waits for a signal without a timeout. The event stays signalled, like a polled
        /// descriptor.
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
