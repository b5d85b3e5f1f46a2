//! Links at interfaces in use, from their first frame to their removal.

use std::thread;
use std::time::{Duration, Instant};

use longwire_io::attach::{
    AttachClaim, AttachError, Attachment, Engage, LoadedSelection, Selector, engage_all,
};
use longwire_io::net::grace::ExpeditedGrace;
use longwire_runtime::{RunReport, RunningNetwork};

/// Time limit for draining a network at its end.
const DRAIN: Duration = Duration::from_secs(2);

/// Longest time between the loss of a link's device and that of its interface while their namespace
/// is removed.
const REMOVAL: Duration = Duration::from_secs(1);

/// The attached links of a run. Dropping it restores the interfaces, except those that fail closed.
#[derive(Debug)]
pub struct AttachedLinks {
    present: Vec<Attachment>,
    /// Links whose interface is gone; frames in flight count as lost.
    gone: Vec<Attachment>,
    /// Held from the drain on, as the kernel waits for each program and ring. Dropped last.
    hurry: Option<ExpeditedGrace>,
}

impl AttachedLinks {
    /// Starts taking frames at all of these interfaces, or at none.
    ///
    /// # Errors
    /// As [`engage_all`].
    pub fn engage(engages: Vec<Engage>) -> Result<AttachedLinks, AttachError> {
        Ok(AttachedLinks {
            present: engage_all(engages)?,
            gone: Vec::new(),
            hurry: None,
        })
    }

    /// Returns the interfaces that still have their link.
    pub fn interfaces(&self) -> Vec<&str> {
        self.present.iter().map(Attachment::interface).collect()
    }

    /// Returns the interfaces that have lost their link.
    pub fn lost(&self) -> Vec<&str> {
        self.gone.iter().map(Attachment::interface).collect()
    }

    /// Returns the interfaces that stay closed after a drop.
    pub fn closed(&self) -> Vec<&str> {
        let closed = self.present.iter().filter(|one| one.stays_closed());
        closed.map(Attachment::interface).collect()
    }

    /// Returns the claims for a later process.
    pub fn claims(&self) -> impl Iterator<Item = AttachClaim> {
        self.present.iter().map(Attachment::claim)
    }

    /// Returns the loader of selections for each interface.
    pub fn selectors(&self) -> Vec<Selector> {
        self.present.iter().map(Attachment::selector).collect()
    }

    /// Changes the selection of traffic.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn select(&mut self, loaded: Vec<LoadedSelection>) -> Result<(), AttachError> {
        let mut links = self.present.iter_mut().zip(loaded);
        links.try_for_each(|(link, loaded)| link.select(loaded))
    }

    /// Releases links whose interface is gone. Returns how many there were.
    pub fn drop_lost(&mut self) -> usize {
        let before = self.gone.len();
        let lost = self.present.extract_if(.., |link| !link.is_attached());
        self.gone.extend(lost);
        let lost = &mut self.gone[before..];
        lost.iter_mut().for_each(Attachment::release);
        lost.len()
    }

    /// Stops taking frames, and delivers those in flight, for at most 2 s.
    pub fn drain(&mut self, running: &RunningNetwork) {
        self.hurry = Some(ExpeditedGrace::begin());
        self.present.iter_mut().for_each(Attachment::release);
        drain(running, || {
            for link in self.present.iter().chain(&self.gone) {
                link.note_losses();
            }
        });
    }

    /// Removes lost ports from a report if their namespace is gone, and with it the interfaces of all
    /// links. Waits up to a second. Returns whether it removed ports.
    pub fn forgive_lost_ports(&self, run: &mut RunReport) -> bool {
        if run.ports.iter().all(|port| port.lost.is_none()) {
            return false;
        }
        let since = Instant::now();
        while self.present.iter().any(Attachment::is_attached) {
            if since.elapsed() > REMOVAL {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        run.ports.iter_mut().for_each(|port| port.lost = None);
        true
    }

    /// Removes all devices, and waits for that. The run must have ended.
    pub fn remove(self) {
        let links = self.present.into_iter().chain(self.gone);
        links.for_each(Attachment::remove);
    }
}

/// Waits until no frame is in flight, for at most 2 s, and notes losses at interfaces.
pub fn drain(running: &RunningNetwork, note_losses: impl Fn()) {
    let since = Instant::now();
    loop {
        let ended = running.wait(Duration::from_millis(1));
        let is_drained = running.snapshot().in_flight == 0;
        note_losses();
        if ended || is_drained || since.elapsed() > DRAIN {
            return;
        }
    }
}
