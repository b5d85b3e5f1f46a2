//! The agenda of a network: which link has an event at which time.

use longwire_units::Nanos;

use crate::link::LinkId;
use crate::release::ReleaseQueue;

/// Links by the time of their next event. An idle link costs nothing, and a change
/// costs the same for ten links and for a million.
///
/// A link's time may change before it is reached. Its stale entry then remains and is
/// skipped: that is rare, and cheaper than a search. Events of the same time are in the
/// order of their links.
#[derive(Debug, Default)]
pub(super) struct Agenda(ReleaseQueue<()>);

impl Agenda {
    /// Adds an entry.
    #[inline]
    pub fn add(&mut self, at: Nanos, link: LinkId) {
        self.0.push(link, at, ());
    }

    /// Returns the time of the next entry.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.0.next_at()
    }

    /// Returns the time and the link of the next entry.
    #[inline]
    pub fn next_place(&mut self) -> Option<(Nanos, LinkId)> {
        self.0.next_place()
    }

    /// Removes the next entry if its time is `now` or before.
    #[inline]
    pub fn take_due(&mut self, now: Nanos) -> Option<(Nanos, LinkId)> {
        let (link, at, ()) = self.0.pop_due(now)?;
        Some((at, link))
    }

    /// Returns the links of the next entries, as far as they are known without a
    /// search.
    pub fn next_links(&self) -> impl Iterator<Item = LinkId> {
        self.0.next_links()
    }

    /// Returns the number of entries, including stale ones.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes the entries for which `keep` returns `false`.
    pub fn retain(&mut self, keep: impl Fn(Nanos, LinkId) -> bool) {
        self.0.retain(|link, at| keep(at, link));
    }
}
