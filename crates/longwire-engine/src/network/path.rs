//! Paths: sequences of links.

use crate::link::LinkId;
use crate::prelude::*;

/// Number of a path in its network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// A sequence of links. Most paths have one link, which is stored inline.
#[derive(Debug)]
pub(super) struct Path {
    first: LinkId,
    rest: Box<[Hop]>,
    /// Number of frames on the path.
    pub frames: u64,
}

/// A link in a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub link: LinkId,
    /// Whether the link is in another network.
    pub is_remote: bool,
}

impl Path {
    /// Creates a path over these links; `None` if empty.
    pub fn new(links: &[LinkId], is_remote: impl Fn(LinkId) -> bool) -> Option<Path> {
        let (first, rest) = links.split_first()?;
        let hop = |link: &LinkId| Hop {
            link: *link,
            is_remote: is_remote(*link),
        };
        Some(Path {
            first: *first,
            rest: rest.iter().map(hop).collect(),
            frames: 0,
        })
    }

    /// Returns the link at index `hop`, from 0.
    #[inline]
    pub fn link(&self, hop: u32) -> Option<LinkId> {
        match hop {
            0 => Some(self.first),
            _ => Some(self.hop(hop)?.link),
        }
    }

    /// Returns the hop at index `hop`, from 1.
    #[inline]
    pub fn hop(&self, hop: u32) -> Option<Hop> {
        self.rest.get(hop as usize - 1).copied()
    }

    /// Returns the link, if there is only one.
    #[inline]
    pub fn only_link(&self) -> Option<LinkId> {
        self.rest.is_empty().then_some(self.first)
    }

    /// Returns all links in order.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        let rest = self.rest.iter().map(|hop| hop.link);
        core::iter::once(self.first).chain(rest)
    }
}
