//! Storage of a network's links.

use core::cell::OnceCell;

use longwire_units::Nanos;

use super::Node;
use crate::link::early::EarlyLink;
use crate::link::{Link, LinkId};
use crate::prelude::*;
use crate::release::Sequence;

/// A network's links by number. The fast path's state is stored separately, so that a frame touches
/// two cache lines of its link.
///
/// A new link is dormant if its fast path's state determines it: it has no node until the node is
/// first used.
#[derive(Debug)]
pub(super) struct Links<T> {
    places: Vec<Place<T>>,
    /// In blocks, so that growth copies no states, and a shard allocates only those near its links.
    early: Vec<Option<Box<[EarlyLink; BLOCK]>>>,
    /// Seed and epoch of all dormant links.
    origin: Option<(u64, Nanos)>,
}

/// Place of a link number.
#[derive(Debug)]
struct Place<T> {
    /// Empty while the link is dormant or the number is unused.
    node: OnceCell<Box<Node<T>>>,
    is_dormant: bool,
    /// Whether a dormant link's queue limit is derived from rate and delay.
    is_derived: bool,
    /// Number of paths that cross the link.
    crossed_by: u32,
    /// Sequence numbers for frames that a dormant link passes on.
    passed_on: Sequence,
}

/// Links per block.
const BLOCK: usize = 64;

impl<T> Place<T> {
    fn new() -> Place<T> {
        Place {
            node: OnceCell::new(),
            is_dormant: false,
            is_derived: false,
            crossed_by: 0,
            passed_on: Sequence::default(),
        }
    }

    fn is_used(&self) -> bool {
        self.is_dormant || self.node.get().is_some()
    }
}

impl<T> Links<T> {
    pub fn new() -> Links<T> {
        Links {
            places: Vec::new(),
            early: Vec::new(),
            origin: None,
        }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds a link. Returns `false`, without effect, if the number is in use.
    pub fn insert(&mut self, id: LinkId, link: Link) -> bool {
        let index = id.0 as usize;
        if index >= self.places.len() {
            self.places.resize_with(index + 1, Place::new);
            self.early.resize_with(index / BLOCK + 1, || None);
        }
        let block = &mut self.early[index / BLOCK];
        let block = block.get_or_insert_with(|| Box::new([const { EarlyLink::NONE }; BLOCK]));
        let early = &mut block[index % BLOCK];
        let place = &mut self.places[index];
        if place.is_used() {
            return false;
        }
        let mut node = Node::new(link);
        node.lane.load_early(early);
        if let Some((origin, is_derived)) = early.origin_of(node.lane.link(), id)
            && *self.origin.get_or_insert(origin) == origin
        {
            (place.is_dormant, place.is_derived) = (true, is_derived);
        } else {
            place.node = Box::new(node).into();
        }
        true
    }

    /// Removes a link, unless a path crosses it.
    pub fn remove(&mut self, id: LinkId) -> Option<Box<Node<T>>> {
        self.get_mut(id)?;
        let place = self.places.get_mut(id.0 as usize)?;
        if place.crossed_by > 0 {
            return None;
        }
        core::mem::replace(place, Place::new()).node.into_inner()
    }

    /// Whether the link exists.
    pub fn contains(&self, id: LinkId) -> bool {
        let place = self.places.get(id.0 as usize);
        place.is_some_and(Place::is_used)
    }

    /// Returns a node. If its [`EarlyLink`] is active, queue and times are stale.
    #[inline]
    pub fn get(&self, id: LinkId) -> Option<&Node<T>> {
        match self.places.get(id.0 as usize)?.node.get() {
            Some(node) => Some(node),
            None => self.wake(id),
        }
    }

    /// Returns a node, unless the link is dormant.
    pub fn existing(&self, id: LinkId) -> Option<&Node<T>> {
        Some(self.places.get(id.0 as usize)?.node.get()?)
    }

    /// Returns a node, after storing the early state.
    #[inline]
    pub fn get_mut(&mut self, id: LinkId) -> Option<&mut Node<T>> {
        self.get(id)?;
        let node = self.places.get_mut(id.0 as usize)?.node.get_mut()?;
        let early = early_of(&mut self.early, id)?;
        if early.is_active() {
            node.lane.store_early(early);
        }
        Some(node)
    }

    /// Creates the node of a dormant link in its initial state; [`Links::get_mut`] then stores the early
    /// state.
    #[cold]
    fn wake(&self, id: LinkId) -> Option<&Node<T>> {
        let place = self.places.get(id.0 as usize)?;
        let place = Some(place).filter(|place| place.is_dormant)?;
        let (seed, epoch) = self.origin?;
        let config = self.peek_early(id)?.config(place.is_derived, epoch)?;
        let node = place.node.get_or_init(|| {
            let link = Link::new_changeable(config, seed, id);
            let passed_on = place.passed_on;
            Box::new(Node {
                passed_on,
                ..Node::new(link)
            })
        });
        Some(node)
    }

    /// Returns the number of paths that cross a link.
    pub fn crossed_by(&mut self, id: LinkId) -> Option<&mut u32> {
        let place = self.places.get_mut(id.0 as usize)?;
        Some(&mut place.crossed_by).filter(|_| place.is_dormant || place.node.get().is_some())
    }

    /// Whether exactly one path crosses a link.
    pub fn is_separate(&self, id: LinkId) -> bool {
        let place = self.places.get(id.0 as usize);
        place.is_some_and(|place| place.crossed_by == 1)
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
        let place = self.places.get_mut(id.0 as usize)?;
        Some(match place.node.get_mut() {
            Some(node) => &mut node.passed_on,
            None => &mut place.passed_on,
        })
    }

    /// Moves a link's state to the fast path, if idle and supported.
    #[inline]
    pub fn load_early(&mut self, id: LinkId) {
        if let Some(place) = self.places.get_mut(id.0 as usize)
            && let Some(node) = place.node.get_mut()
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

#[cfg(test)]
mod tests {
    use longwire_packet::frame::FrameMeta;

    use super::super::PathFrame;
    use super::*;
    use crate::lane::FrameAccess;
    use crate::lane::Lane;
    use crate::link::LinkConfig;
    use crate::loader::NoLoader;
    use crate::network::{FrameHost, Network, PathId};
    use crate::parts::LinkSpec;
    use crate::verdict::{Delivery, DropReason};

    fn config(text: &str) -> LinkConfig {
        let spec: LinkSpec = text.parse().expect("a link");
        spec.build(&NoLoader).expect("no plugins")
    }

    #[test]
    fn plain_links_are_dormant_until_their_nodes_are_used() {
        let mut links = Links::<()>::new();
        let texts = [
            ("rate=10mbit delay=20ms", true),
            ("rate=1mbit queue=7p delay=1ms framing=ethernet", true),
            ("rate=10mbit loss=1%", false),
            ("rate=10mbit delay=1ms queue=codel", false),
            ("delay=1ms", false),
        ];
        for ((text, is_dormant), id) in texts.into_iter().zip((0..).map(LinkId)) {
            let link = Link::new_changeable(config(text), 3, id);
            assert!(links.insert(id, link) && links.contains(id));
            assert_eq!(links.existing(id).is_none(), is_dormant, "{text}");
        }
        // Another seed.
        let other = LinkId(texts.len() as u32);
        let link = Link::new_changeable(config(texts[0].0), 4, other);
        assert!(links.insert(other, link) && links.existing(other).is_some());
        for id in [LinkId(0), LinkId(1)] {
            let early = links.early(id).expect("state");
            let frame = FrameMeta::new(Nanos::from_millis(5), 100);
            assert!(early.offer(frame, Nanos::MAX).is_some());
            assert!(links.existing(id).is_none(), "the fast path needs no node");
            let text = texts[id.0 as usize].0;
            let new = Lane::<PathFrame<()>>::new(Link::new_changeable(config(text), 3, id));
            let woken = links.get(id).map(|node| format!("{:?}", node.lane));
            assert_eq!(woken, Some(format!("{new:?}")), "{text}");
            let stored = links
                .get_mut(id)
                .map(|node| node.lane.link().last_arrival());
            assert_eq!(stored, Some(frame.arrival));
        }
    }

    /// Counts the frames that leave.
    #[derive(Default)]
    struct Exits(u32);

    impl FrameAccess<()> for Exits {
        fn copy(&mut self, _item: &mut ()) {}
    }

    impl FrameHost<()> for Exits {
        fn fragment(&mut self, _of: &(), _bytes: &[u8]) -> Option<()> {
            None
        }
        fn on_arrival(&mut self, _link: LinkId, _len: u32) {}
        fn dropped(&mut self, _link: LinkId, _item: (), _reason: DropReason) {}
        fn delivered(&mut self, _: LinkId, _item: &(), _len: u32, _: &Delivery, _copy: bool) {}
        fn on_exit(&mut self, _item: (), _last: LinkId, _release: Nanos) {
            self.0 += 1;
        }
        fn forget(&mut self, _item: ()) {}
    }

    #[test]
    fn links_that_pass_frames_on_stay_dormant() {
        let mut network = Network::<()>::new();
        let (path, links) = (PathId(0), [LinkId(0), LinkId(1)]);
        for id in links {
            network.add_link(
                id,
                Link::new_changeable(config("rate=10mbit delay=20ms"), 3, id),
            );
        }
        assert!(network.add_path(path, &links));
        network.stays_until(Nanos::MAX);
        let mut exits = Exits::default();
        let frame = FrameMeta::new(Nanos::from_millis(5), 100);
        assert!(network.offer(path, frame, (), &mut exits).is_ok());
        network.advance(Nanos::from_secs(1), &mut exits);
        assert_eq!(exits.0, 1);
        assert!(links.iter().all(|id| network.links.existing(*id).is_none()));
    }
}
