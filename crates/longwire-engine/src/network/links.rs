//! Storage of a network's links.

use super::Node;
use crate::link::LinkId;
use crate::link::early::EarlyLink;
use crate::prelude::*;
use crate::release::Sequence;

/// A network's links by number. The fast path's state is stored separately, so that a frame touches
/// two cache lines of its link.
#[derive(Debug)]
pub(super) struct Links<T> {
    nodes: Vec<Option<Box<Node<T>>>>,
    /// In blocks, so that growth copies no states, and a shard allocates only those near its links.
    early: Vec<Option<Box<[EarlyLink; BLOCK]>>>,
}

/// Links per block.
const BLOCK: usize = 64;

impl<T> Links<T> {
    pub fn new() -> Links<T> {
        Links {
            nodes: Vec::new(),
            early: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a node. Returns `false`, without effect, if the number is in use.
    pub fn insert(&mut self, id: LinkId, node: Box<Node<T>>) -> bool {
        let index = id.0 as usize;
        if index >= self.nodes.len() {
            self.nodes.resize_with(index + 1, || None);
            self.early.resize_with(index / BLOCK + 1, || None);
        }
        let block = &mut self.early[index / BLOCK];
        block.get_or_insert_with(|| Box::new([const { EarlyLink::NONE }; BLOCK]));
        let place = &mut self.nodes[index];
        let is_free = place.is_none();
        if is_free {
            *place = Some(node);
        }
        is_free
    }

    /// Removes a link, unless a path crosses it.
    pub fn remove(&mut self, id: LinkId) -> Option<Box<Node<T>>> {
        self.get_mut(id)?;
        let place = self.nodes.get_mut(id.0 as usize)?;
        place.take_if(|node| node.crossed_by == 0)
    }

    /// Returns a node. If its [`EarlyLink`] is active, queue and times are stale.
    #[inline]
    pub fn get(&self, id: LinkId) -> Option<&Node<T>> {
        self.nodes.get(id.0 as usize)?.as_deref()
    }

    /// Returns a node, after storing the early state.
    #[inline]
    pub fn get_mut(&mut self, id: LinkId) -> Option<&mut Node<T>> {
        let node = self.nodes.get_mut(id.0 as usize)?.as_deref_mut()?;
        let early = early_of(&mut self.early, id)?;
        if early.is_active() {
            node.lane.store_early(early);
        }
        Some(node)
    }

    /// Returns a link's early state, active or not.
    #[inline(always)]
    pub fn early(&mut self, id: LinkId) -> Option<&mut EarlyLink> {
        early_of(&mut self.early, id)
    }

    /// Returns the early state of a link, active or not.
    #[inline]
    pub fn peek_early(&self, id: LinkId) -> Option<&EarlyLink> {
        let index = id.0 as usize;
        Some(&self.early.get(index / BLOCK)?.as_ref()?[index % BLOCK])
    }

    /// Returns the sequence of the frames that a link passes on.
    #[inline]
    pub fn passed_on(&mut self, id: LinkId) -> Option<&mut Sequence> {
        let node = self.nodes.get_mut(id.0 as usize)?.as_deref_mut()?;
        Some(&mut node.passed_on)
    }

    /// Moves a link's state to the fast path, if idle and supported.
    #[inline]
    pub fn load_early(&mut self, id: LinkId) {
        if let Some(Some(node)) = self.nodes.get_mut(id.0 as usize)
            && !node.detached
            && let Some(early) = early_of(&mut self.early, id)
        {
            node.lane.load_early(early);
        }
    }
}

#[inline(always)]
fn early_of(blocks: &mut [Option<Box<[EarlyLink; BLOCK]>>], id: LinkId) -> Option<&mut EarlyLink> {
    let index = id.0 as usize;
    Some(&mut blocks.get_mut(index / BLOCK)?.as_mut()?[index % BLOCK])
}
