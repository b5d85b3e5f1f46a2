//! Paths: links that a frame crosses in sequence.

use alloc::boxed::Box;

use crate::link::LinkId;

/// Number of a path in its network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// A path. Most have one link, which is stored inline.
#[derive(Debug)]
pub(super) struct Path {
    first: LinkId,
    rest: Box<[LinkId]>,
    /// Number of frames on it.
    pub frames: u64,
}

impl Path {
    /// Creates a path of these links; `None` if there are none.
    pub fn new(links: &[LinkId]) -> Option<Path> {
        let (first, rest) = links.split_first()?;
        Some(Path {
            first: *first,
            rest: rest.into(),
            frames: 0,
        })
    }

    /// Returns the link at index `hop`, from 0.
    #[inline]
    pub fn link(&self, hop: u32) -> Option<LinkId> {
        match hop.checked_sub(1) {
            None => Some(self.first),
            Some(hop) => self.rest.get(hop as usize).copied(),
        }
    }

    /// Returns all links in order.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        core::iter::once(self.first).chain(self.rest.iter().copied())
    }
}
