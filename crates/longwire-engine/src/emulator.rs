//! Links and their release queue together: the engine as one object, for
//! virtual time and for tests. The live pipeline runs the same parts on
//! separate cores.

use alloc::vec::Vec;

use crate::frame::FrameMeta;
use crate::link::{Link, LinkId};
use crate::release::ReleaseQueue;
use crate::units::Nanos;
use crate::verdict::{Delivery, Verdict};

/// Several links and what waits for release from them. `T` is the caller's
/// handle of a frame.
#[derive(Debug)]
pub struct Emulator<T> {
    links: Vec<Link>,
    waiting: ReleaseQueue<(T, Delivery)>,
}

impl<T> Emulator<T> {
    /// An emulator of these links, numbered from 0.
    pub fn new(links: Vec<Link>) -> Emulator<T> {
        Emulator {
            links,
            waiting: ReleaseQueue::new(),
        }
    }

    /// Offers a frame to a link. A delivered frame waits here until
    /// [`Emulator::poll`] yields it.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn offer(&mut self, link: LinkId, frame: FrameMeta, header: &[u8], item: T) -> Verdict {
        let verdict = self.links[link.0 as usize].offer(frame, header);
        if let Verdict::Deliver(delivery) = verdict {
            self.waiting.push(link, delivery.release, (item, delivery));
        }
        verdict
    }

    /// The next frame due at `now` or before. Calling late changes nothing
    /// but the time of the call.
    pub fn poll(&mut self, now: Nanos) -> Option<(LinkId, T, Delivery)> {
        let (link, _, (item, delivery)) = self.waiting.pop_due(now)?;
        Some((link, item, delivery))
    }

    /// When to call [`Emulator::poll`] next.
    pub fn next_at(&self) -> Option<Nanos> {
        self.waiting.next_at()
    }

    /// How many frames wait for their release.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// One of the links.
    pub fn link(&self, link: LinkId) -> Option<&Link> {
        self.links.get(link.0 as usize)
    }
}
