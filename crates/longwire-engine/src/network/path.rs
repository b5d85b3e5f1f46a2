//! Paths: links that a frame crosses one after the other.

use alloc::boxed::Box;

use crate::link::LinkId;

/// The number of a path in its network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// A path. Most have one link, which is kept in place.
#[derive(Debug)]
pub(super) struct Path {
    first: LinkId,
    rest: Box<[LinkId]>,
    /// Frames that are on it.
    pub frames: u64,
}

impl Path {
    /// A path of these links; `None` if there are none.
    pub fn new(links: &[LinkId]) -> Option<Path> {
        let (first, rest) = links.split_first()?;
        Some(Path {
            first: *first,
            rest: rest.into(),
            frames: 0,
        })
    }

    /// Its link number `hop`, from 0.
    #[inline]
    pub fn link(&self, hop: u32) -> Option<LinkId> {
        match hop.checked_sub(1) {
            None => Some(self.first),
            Some(hop) => self.rest.get(hop as usize).copied(),
        }
    }

    /// Every link, in order.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        core::iter::once(self.first).chain(self.rest.iter().copied())
    }
}
