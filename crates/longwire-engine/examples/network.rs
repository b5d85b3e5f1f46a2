//! A network in virtual time: two paths share their last link, whose full queue drops frames of
//! both.
//!
//! ```sh
//! cargo run -p longwire-engine --example network
//! ```

use std::error::Error;

use longwire_engine::network::FrameHost;
use longwire_engine::{
    Delivery, DropReason, FrameAccess, FrameMeta, Link, LinkId, LinkSpec, Nanos, Network, NoLoader,
    PathId,
};

/// A frame: flow number and frame number.
type Frame = (u32, u32);

/// Prints network events. Frames carry no bytes.
struct Printer;

impl FrameAccess<Frame> for Printer {
    fn copy(&mut self, frame: &mut Frame) -> Frame {
        *frame
    }
}

impl FrameHost<Frame> for Printer {
    fn fragment(&mut self, of: &Frame, _bytes: &[u8]) -> Option<Frame> {
        Some(*of)
    }

    fn on_arrival(&mut self, _link: LinkId, _len: u32) {}

    fn dropped(&mut self, link: LinkId, (flow, number): Frame, reason: DropReason) {
        println!(
            "link {} drops frame {number} of flow {flow}: {}",
            link.0,
            reason.name()
        );
    }

    fn delivered(&mut self, _: LinkId, _: &Frame, _: u32, _: &Delivery, _is_duplicate: bool) {}

    fn on_exit(&mut self, (flow, number): Frame, _last: LinkId, release: Nanos) {
        println!("frame {number} of flow {flow} arrives at {release}");
    }

    fn forget(&mut self, _frame: Frame) {}
}

/// Builds link `number` from its specification.
fn link(number: u32, line: &str) -> Result<Link, Box<dyn Error>> {
    let spec: LinkSpec = line.parse()?;
    Ok(Link::new(spec.build(&NoLoader)?, 1, LinkId(number)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut network = Network::new();
    network.add_link(LinkId(0), link(0, "rate=100mbit delay=1ms")?);
    network.add_link(LinkId(1), link(1, "rate=100mbit delay=5ms")?);
    network.add_link(LinkId(2), link(2, "rate=10mbit delay=10ms queue=3p")?);
    network.add_path(PathId(0), &[LinkId(0), LinkId(2)]);
    network.add_path(PathId(1), &[LinkId(1), LinkId(2)]);

    let mut host = Printer;
    for number in 0..8 {
        let arrival = Nanos::from_millis(number.into());
        network.advance(arrival, &mut host);
        for flow in 0..2 {
            let frame = FrameMeta::new(arrival, 1_514);
            let offered = network.offer(PathId(flow), frame, (flow, number), &mut host);
            assert!(offered.is_ok(), "both paths exist");
        }
    }
    while let Some(at) = network.next_at() {
        network.advance(at, &mut host);
    }
    Ok(())
}
