//! Reports the decisions of links, and forwards the frames.

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

use super::{FrameHost, Network, PathId, Traveller, TravellerBytes};
use crate::held::HeldBytes;
use crate::link::LinkId;
use crate::release::{ReleaseKey, Sequence};
use crate::verdict::{Delivery, DropReason, Verdict};

impl<T> Network<T> {
    /// Drops a frame at the first link of a path without offering it to the link: the
    /// link counts it, and neither its queue nor its random streams change. As with
    /// [`Network::offer`], events of that instant come first.
    /// [`Network::advance`] must have been called with its arrival.
    ///
    /// # Errors
    /// Returns the frame if there is no such path.
    pub fn drop_at_entry(
        &mut self,
        path: PathId,
        frame: FrameMeta,
        mut item: T,
        reason: DropReason,
        host: &mut impl FrameHost<T>,
    ) -> Result<(), T> {
        let path = self.paths.get(path.0 as usize).and_then(Option::as_ref);
        let Some(id) = path.and_then(|path| path.link(0)) else {
            return Err(item);
        };
        self.serve_until(frame.arrival, host);
        let Some(Some(node)) = self.nodes.get(id.0 as usize) else {
            return Err(item);
        };
        host.at(frame.arrival);
        host.on_arrival(id, frame.len);
        host.offered(id, &mut item, frame, &node.link);
        host.dropped(id, item, reason);
        Ok(())
    }

    /// Reports the decisions of a link's queue by events before `now` and, if `at_now`,
    /// at it.
    pub(super) fn serve(
        &mut self,
        id: LinkId,
        now: Nanos,
        at_now: bool,
        host: &mut impl FrameHost<T>,
    ) {
        // The deliveries of one frame follow each other directly.
        let mut is_duplicate = false;
        loop {
            let Some(Some(node)) = self.nodes.get_mut(id.0 as usize) else {
                return;
            };
            let frames = HeldBytes {
                held: &node.held,
                of: &TravellerBytes(&*host),
            };
            let decided = if at_now {
                node.link.poll(now, &frames)
            } else {
                node.link.poll_before(now, &frames)
            };
            let Some((number, verdict)) = decided else {
                return;
            };
            match verdict {
                Verdict::Deliver(delivery) => {
                    if delivery.edits.any() && !is_duplicate {
                        node.edit(number, &delivery, host);
                    }
                    let traveller = if delivery.more {
                        node.held.get_mut(number).map(|held| held.copied(host))
                    } else {
                        node.held.take(number)
                    };
                    if let Some(traveller) = traveller {
                        if delivery.more {
                            self.entered(traveller.path);
                        }
                        self.deliver(id, traveller, &delivery, is_duplicate, host);
                    }
                    is_duplicate = delivery.more;
                }
                Verdict::Drop(reason) => {
                    if let Some(traveller) = node.held.take(number) {
                        self.drop_frame(id, traveller, reason, host);
                    }
                }
                Verdict::Queued => {}
            }
        }
    }

    /// Delivers a frame and its copies, for a link that decides at arrival.
    pub(super) fn deliver_at_once(
        &mut self,
        id: LinkId,
        mut traveller: Traveller<T>,
        mut delivery: Delivery,
        host: &mut impl FrameHost<T>,
    ) {
        if delivery.edits.any()
            && let Some(Some(node)) = self.nodes.get_mut(id.0 as usize)
        {
            let link = &mut node.link;
            host.edit(&mut traveller.item, &mut |bytes| {
                link.edit(&delivery, bytes)
            });
        }
        let mut is_duplicate = false;
        while delivery.more {
            let copy = traveller.copied(host);
            self.entered(copy.path);
            self.deliver(id, copy, &delivery, is_duplicate, host);
            is_duplicate = true;
            let node = self.nodes.get_mut(id.0 as usize).and_then(Option::as_mut);
            match node.and_then(|node| node.link.next_copy()) {
                Some(next) => delivery = next,
                None => break,
            }
        }
        self.deliver(id, traveller, &delivery, is_duplicate, host);
    }

    /// Delivers a frame to the next link, or to the path's end.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        id: LinkId,
        traveller: Traveller<T>,
        delivery: &Delivery,
        is_duplicate: bool,
        host: &mut impl FrameHost<T>,
    ) {
        host.delivered(id, &traveller.item, traveller.len, delivery, is_duplicate);
        let path = self.paths.get_mut(traveller.path.0 as usize);
        let Some(path) = path.and_then(Option::as_mut) else {
            return host.on_exit(traveller.item, id, delivery.release);
        };
        let Some(next) = path.link(traveller.hop + 1) else {
            path.frames -= 1;
            return host.on_exit(traveller.item, id, delivery.release);
        };
        let traveller = Traveller {
            hop: traveller.hop + 1,
            ..traveller
        };
        let place = ReleaseKey {
            release: delivery.release,
            link: id,
            sequence: self.number_passed_on(id),
        };
        match self.nodes.get(next.0 as usize) {
            Some(Some(_)) => self.between.push_at(place, traveller),
            _ => {
                host.passed_on(id, traveller.len);
                self.cross(place, next, traveller);
            }
        }
    }

    /// Numbers a frame that a link passes on to another one.
    fn number_passed_on(&mut self, id: LinkId) -> Sequence {
        let node = self.nodes.get_mut(id.0 as usize).and_then(Option::as_mut);
        node.map_or_else(Sequence::default, |node| node.passed_on.next())
    }

    pub(super) fn drop_frame(
        &mut self,
        id: LinkId,
        traveller: Traveller<T>,
        reason: DropReason,
        host: &mut impl FrameHost<T>,
    ) {
        self.left(traveller.path);
        host.dropped(id, traveller.item, reason);
    }
}
