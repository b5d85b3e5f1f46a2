//! Links on no path, such as the two of a pair of ports: a frame is offered to its link
//! and leaves the network at its release.

use longwire_packet::frame::FrameMeta;
use longwire_units::Nanos;

use super::{FrameHost, Network, PathId, Traveller};
use crate::link::LinkId;

/// The path of frames on no path.
const NO_PATH: PathId = PathId(u32::MAX);

impl<T> Network<T> {
    /// Offers a frame to a link outside any path, at its arrival:
    /// [`Network::advance_alone`] must have been called with that time. The frame is not
    /// fragmented.
    #[inline]
    pub fn offer_alone(
        &mut self,
        id: LinkId,
        frame: FrameMeta,
        item: T,
        host: &mut impl FrameHost<T>,
    ) {
        let traveller = Traveller {
            item,
            path: NO_PATH,
            hop: 0,
            len: frame.len,
        };
        self.enter_link(id, traveller, frame.arrival, host);
    }

    /// Processes the events up to and including `until` of all links, none of which is on
    /// a path: first all of the link that has the next event.
    pub fn advance_alone(&mut self, until: Nanos, host: &mut impl FrameHost<T>) {
        while let Some((at, id)) = self.next_alone()
            && at <= until
        {
            self.serve(id, until, true, host);
        }
    }

    /// Returns the time of the next event of links on no path, and the link.
    #[inline]
    pub fn next_alone(&mut self) -> Option<(Nanos, LinkId)> {
        let nodes = self.nodes.iter_mut().zip(0..);
        let next =
            nodes.filter_map(|(node, id)| Some((node.as_mut()?.link.next_at()?, LinkId(id))));
        next.min()
    }
}
