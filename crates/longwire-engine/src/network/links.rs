//! A network's links by number.

use super::Node;
use crate::link::LinkId;
use crate::link::early::EarlyLink;
use crate::prelude::*;
use crate::release::Sequence;

/// A network's links by number. The working state of links that decide on arrival is apart, so that
/// frames in many links touch little memory.
#[derive(Debug)]
pub(super) struct Links<T> {
    nodes: Vec<Option<Box<Node<T>>>>,
    early: Vec<EarlyLink>,
}

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
            self.early.resize_with(index + 1, EarlyLink::default);
        }
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

    /// Returns a node, whose queue and times may be outdated: they may be in the [`EarlyLink`].
    #[inline]
    pub fn get(&self, id: LinkId) -> Option<&Node<T>> {
        self.nodes.get(id.0 as usize)?.as_deref()
    }

    /// Returns a node with its whole state.
    #[inline]
    pub fn get_mut(&mut self, id: LinkId) -> Option<&mut Node<T>> {
        let node = self.nodes.get_mut(id.0 as usize)?.as_deref_mut()?;
        let early = &mut self.early[id.0 as usize];
        if early.is_active() {
            node.lane.take_back(early);
        }
        Some(node)
    }

    /// Returns a link's early state, if active, knowing the serialisation time of `len` bytes.
    #[inline(always)]
    pub fn early(&mut self, id: LinkId, len: u32) -> Option<&mut EarlyLink> {
        let early = self.early.get_mut(id.0 as usize)?;
        if !early.is_active() {
            return None;
        }
        if !early.knows(len) {
            let node = self.nodes.get(id.0 as usize)?.as_ref()?;
            early.learn(len, node.lane.link());
        }
        Some(early)
    }

    /// Returns the early state of a link, active or not.
    #[inline]
    pub fn peek_early(&self, id: LinkId) -> Option<&EarlyLink> {
        self.early.get(id.0 as usize)
    }

    /// Returns the sequence of the frames that a link passes on.
    #[inline]
    pub fn passed_on(&mut self, id: LinkId) -> Option<&mut Sequence> {
        let node = self.nodes.get_mut(id.0 as usize)?.as_deref_mut()?;
        Some(&mut node.passed_on)
    }

    /// Lets a link decide early from now on, if it can.
    #[inline]
    pub fn lend(&mut self, id: LinkId) {
        if let Some(Some(node)) = self.nodes.get_mut(id.0 as usize)
            && !node.detached
        {
            node.lane.lend(&mut self.early[id.0 as usize]);
        }
    }
}
