//! A custom delay model: parabolic delay during the passes of a satellite.
//!
//! ```sh
//! cargo run -p longwire-engine --example custom_model
//! ```

use std::error::Error;

use longwire_engine::models::Described;
use longwire_engine::models::delay::DelayModel;
use longwire_engine::{FrameContext, FrameMeta, Link, LinkId, LinkSpec, Nanos, NoLoader, Verdict};
use longwire_units::random::Stream;

/// Delay that falls from `longest` to `shortest` in the first half of each pass, then rises again.
#[derive(Clone, Debug)]
struct Pass {
    shortest: Nanos,
    longest: Nanos,
    duration: Nanos,
    epoch: Nanos,
}

impl DelayModel for Pass {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch;
    }

    fn draw(&mut self, frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        // Integer arithmetic gives identical delays on every machine. `position` runs from -1,000
        // to 1,000 in each pass.
        let since = frame.at.saturating_sub(self.epoch).as_nanos() % self.duration.as_nanos();
        let position = (2_000 * since / self.duration.as_nanos()) as i64 - 1_000;
        let square = position.unsigned_abs().pow(2);
        let range = self.longest.saturating_sub(self.shortest).as_nanos();
        self.shortest
            .saturating_add(Nanos::from_nanos(range * square / 1_000_000))
    }

    fn least(&self) -> Nanos {
        self.shortest
    }

    fn mean(&self) -> Nanos {
        let range = self.longest.saturating_sub(self.shortest).as_nanos();
        self.shortest.saturating_add(Nanos::from_nanos(range / 3))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let pass = Pass {
        shortest: Nanos::from_millis(4),
        longest: Nanos::from_millis(12),
        duration: Nanos::from_secs(600),
        epoch: Nanos::ZERO,
    };
    let text = format!("pass:shortest={},longest={}", pass.shortest, pass.longest);
    let delay: Described<dyn DelayModel> = Described::new(text, Box::new(pass));
    let spec = LinkSpec::new().delay(delay);
    println!("{spec}");
    let mut link = Link::new(spec.build(&NoLoader)?, 1, LinkId(0));
    for minute in 0..=10 {
        let arrival = Nanos::from_secs(60 * minute);
        let frame = FrameMeta { arrival, len: 100 };
        if let Verdict::Deliver(delivery) = link.offer(frame, &[]) {
            println!(
                "after {minute:2} min: {}",
                delivery.release.saturating_sub(arrival)
            );
        }
    }
    Ok(())
}
