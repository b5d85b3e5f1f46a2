//! When which link has something to do.

use longwire_units::Nanos;

use crate::link::LinkId;
use crate::release::ReleaseQueue;

/// Links by the time of their next event. An idle link costs nothing, and a
/// change costs the same for ten links and for a million.
///
/// A link's time may change before it has come. Its old entry then stays and
/// is passed over when it comes up: that is rare, and cheaper than finding it.
/// Among events of one time, those noted first come first.
#[derive(Debug, Default)]
pub(super) struct Agenda(ReleaseQueue<()>);

impl Agenda {
    /// Adds an entry.
    #[inline]
    pub fn add(&mut self, at: Nanos, link: LinkId) {
        self.0.push(link, at, ());
    }

    /// The time of the entry that is next.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.0.next_at()
    }

    /// Takes the entry that is next, if its time is `now` or before.
    #[inline]
    pub fn take_due(&mut self, now: Nanos) -> Option<(Nanos, LinkId)> {
        let (link, at, ()) = self.0.pop_due(now)?;
        Some((at, link))
    }

    /// The links of the next entries, as far as that is known without a
    /// search.
    pub fn next_links(&self) -> impl Iterator<Item = LinkId> {
        self.0.next_links()
    }

    /// How many entries there are, those to be passed over included.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the entries that `keep` says no to.
    pub fn retain(&mut self, keep: impl Fn(Nanos, LinkId) -> bool) {
        self.0.retain(|link, at| keep(at, link));
    }
}
