//! Bells: a thread that publishes wakes another that may sleep.
//!
//! The publisher makes its work visible and then checks whether the sleeper has
//! announced its sleep; the sleeper announces its sleep and then checks for work. Each
//! stores one variable and loads the other, so both could read old values without a
//! full fence between store and load: the work would wait unseen while its thread
//! sleeps. `tests/loom_bell.rs` has the model.

use crate::event::Event;
use crate::sync::{AtomicBool, Ordering, fence};

/// An event, and whether its thread sleeps.
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
    /// The system provides no event descriptor.
    pub fn new() -> nix::Result<Bell> {
        Ok(Bell {
            event: Event::new()?,
            asleep: AtomicBool::new(false),
        })
    }

    /// Wakes the thread if it sleeps. Call it after publishing.
    #[inline]
    pub fn ring_if_asleep(&self) {
        // Orders the publication before the check, as `asleep` orders the announcement
        // before the sleeper's check: one of the two checks sees the other thread's
        // store.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    /// Announces that the thread is about to sleep. It must check for work once more
    /// before it waits for the event.
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

    /// Returns the event to wait for; readable once the bell has rung.
    pub fn event(&self) -> &Event {
        &self.event
    }
}
