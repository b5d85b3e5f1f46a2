//! Events between threads, and bells, with which a publishing thread wakes a sleeping one.
//!
//! The publisher makes its work visible and then checks whether the sleeper has announced its
//! sleep. The sleeper announces its sleep and then checks for work. Each side stores one variable
//! and loads the other. Without a full fence between store and load, both could read old values,
//! and the work would wait while its thread sleeps. `tests/loom_bell.rs` models this.

#[cfg(feature = "loom")]
pub use modelled::Event;
#[cfg(not(feature = "loom"))]
pub use real::Event;

use crate::sync::{AtomicBool, Ordering, fence};

#[cfg(not(feature = "loom"))]
mod real {
    use std::os::fd::{AsFd, BorrowedFd};

    use nix::sys::eventfd::{EfdFlags, EventFd};

    /// An eventfd: readable from a signal until it is cleared.
    #[derive(Debug)]
    pub struct Event(EventFd);

    impl Event {
        /// Creates an unsignalled event.
        ///
        /// # Errors
        /// No file descriptor is available.
        pub fn new() -> nix::Result<Event> {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            Ok(Event(EventFd::from_flags(flags)?))
        }

        /// Makes the descriptor readable.
        pub fn signal(&self) {
            // Fails only if the counter is full; the event is then already readable.
            let _ = self.0.write(1);
        }

        /// Clears all signals without blocking.
        pub fn clear(&self) {
            // Fails only if there is no signal.
            let _ = self.0.read();
        }
    }

    impl AsFd for Event {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

/// The loom counterpart, with a blocking call instead of a descriptor.
#[cfg(feature = "loom")]
mod modelled {
    use std::os::fd::{AsFd, BorrowedFd};

    use loom::sync::{Condvar, Mutex};

    /// An event between loom threads.
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

        /// Clears all signals without blocking.
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

/// An event and whether its thread sleeps.
#[derive(Debug)]
#[repr(align(128))]
pub struct Bell {
    event: Event,
    asleep: AtomicBool,
}

impl Bell {
    /// Creates a bell for a running thread.
    ///
    /// # Errors
    /// No file descriptor is available.
    pub fn new() -> nix::Result<Bell> {
        Ok(Bell {
            event: Event::new()?,
            asleep: AtomicBool::new(false),
        })
    }

    /// Wakes the thread if it sleeps. Call after publishing.
    #[inline]
    pub fn ring_if_asleep(&self) {
        // Orders the publication before the check, as `asleep` orders the announcement before the
        // sleeper's check. At least one of the two checks then sees the other thread's store.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    /// Announces that the thread is about to sleep. The thread must check for work once more before
    /// it waits for the event.
    #[inline]
    pub fn asleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Announces that the thread is awake.
    #[inline]
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the thread, now or at its next wait.
    pub fn ring(&self) {
        self.event.signal();
    }

    /// Returns the event to wait for. It is readable once the bell has rung.
    pub fn event(&self) -> &Event {
        &self.event
    }
}
