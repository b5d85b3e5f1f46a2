//! A link in virtual time: twenty frames at 10 Mbit/s, 20 ms and 10 % loss.
//!
//! ```sh
//! cargo run -p longwire-engine --example link
//! ```

use std::error::Error;

use longwire_engine::{
    Delivery, DropReason, FrameAccess, FrameMeta, Lane, LaneHost, Link, LinkId, LinkSpec, Nanos,
    NoLoader,
};

/// Prints each decision. Frames are plain numbers.
struct Printer;

impl FrameAccess<u64> for Printer {
    fn copy(&mut self, number: &mut u64) -> u64 {
        *number
    }
}

impl LaneHost<u64> for Printer {
    fn delivered(&mut self, number: u64, delivery: &Delivery, _is_duplicate: bool) {
        println!("frame {number:2} leaves at {}", delivery.release);
    }

    fn dropped(&mut self, number: u64, reason: DropReason) {
        println!("frame {number:2} is dropped: {}", reason.name());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let spec: LinkSpec = "rate=10mbit delay=20ms loss=10%".parse()?;
    let link = Link::new(spec.build(&NoLoader)?, 7, LinkId(0));
    let mut lane = Lane::new(link);

    // Time is an argument, so the loop never waits.
    for number in 0..20 {
        let arrival = Nanos::from_micros(500 * number);
        lane.poll(..=arrival, &mut Printer);
        lane.offer(FrameMeta::new(arrival, 1_514), number, &mut Printer);
    }
    lane.poll(.., &mut Printer);
    Ok(())
}
