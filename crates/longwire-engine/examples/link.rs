//! A link in virtual time: twenty frames at 10 Mbit/s, 20 ms and 10 % loss.
//!
//! ```sh
//! cargo run -p longwire-engine --example link
//! ```

use std::error::Error;

use longwire_engine::{Emulator, FrameMeta, Link, LinkId, LinkSpec, Nanos, NoLoader, Verdict};

fn main() -> Result<(), Box<dyn Error>> {
    let spec: LinkSpec = "rate=10mbit delay=20ms loss=10%".parse()?;
    let id = LinkId(0);
    let link = Link::new(spec.build(&NoLoader)?, 7, id);
    let mut emulator = Emulator::new(vec![link]);

    // Time is an argument: the loop below takes no time at all.
    for number in 0..20 {
        let arrival = Nanos::from_micros(500 * number);
        let frame = FrameMeta::new(arrival, 1_514);
        emulator.advance(arrival, &());
        if let Verdict::Drop(reason) = emulator.offer(id, frame, &[], number) {
            println!(
                "frame {number:2} arrives at {arrival:>6} and is dropped: {}",
                reason.name()
            );
        }
    }
    while let Some(now) = emulator.next_at() {
        emulator.advance(now, &());
        while let Some((_, number, delivery)) = emulator.poll(now) {
            println!("frame {number:2} leaves at {}", delivery.release);
        }
    }
    Ok(())
}
