//! Burst losses.

use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{Probability, parse_count};

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "burst",
    summary: "loss bursts that start with a fixed probability per frame; length/(length + 1/start \
              - 1) of all frames are lost",
    params: &[
        Param::new("start", Unit::Probability).help("probability that a burst starts at a frame"),
        Param::new("length", Unit::Count)
            .help("frames per burst, 1 to 1000000; the mean unless distribution=fixed"),
        Param::with_default(
            "distribution",
            Unit::Choice(&["fixed", "geometric", "uniform"]),
            "fixed",
        )
        .help(
            "distribution of burst lengths: fixed, geometric from 1, or uniform from 1 to \
             2·length - 1",
        ),
        PLACE,
        ECN,
    ],
};

const LENGTH_MAX: u64 = 1_000_000;

/// Distribution of burst lengths, in the order of the parameter's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BurstLengths {
    Fixed,
    Geometric,
    Uniform,
}

const DISTRIBUTIONS: [(BurstLengths, &str); 3] = [
    (BurstLengths::Fixed, "fixed"),
    (BurstLengths::Geometric, "geometric"),
    (BurstLengths::Uniform, "uniform"),
];

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let length = arguments.read("length", parse_count)?;
    if length == 0 || length > LENGTH_MAX {
        return Err(arguments.invalid("length is outside 1..1000000 frames"));
    }
    let burst = BurstLoss {
        start: arguments.required("start")?,
        length,
        distribution: DISTRIBUTIONS[arguments.choice("distribution")?],
        left: 0,
    };
    placed(arguments, burst)
}

/// Burst loss.
#[derive(Clone, Copy, Debug)]
struct BurstLoss {
    start: Probability,
    length: u64,
    distribution: (BurstLengths, &'static str),
    /// Remaining frames of the burst.
    left: u64,
}

impl BurstLoss {
    fn draw_length(&self, stream: &mut Stream) -> u64 {
        match self.distribution.0 {
            BurstLengths::Fixed => self.length,
            BurstLengths::Uniform => 1 + stream.up_to(2 * self.length - 2),
            BurstLengths::Geometric => {
                // By inversion; a mean of 1 divides by minus infinity.
                let log_goes_on = libm::log1p(-1.0 / self.length as f64);
                1 + (libm::log(stream.unit()) / log_goes_on) as u64
            }
        }
    }
}

impl LossModel for BurstLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn judge(&mut self, _frame: &FrameContext<'_>, stream: &mut Stream) -> LossDecision {
        if self.left == 0 {
            if !stream.chance(self.start) {
                return None;
            }
            self.left = self.draw_length(stream);
        }
        self.left -= 1;
        Some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BurstLoss {
            start,
            length,
            distribution: (_, word),
            ..
        } = self;
        write!(f, "burst:start={start},length={length},distribution={word}")
    }
}
