//! Bursts with a fixed number of frames.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_engine::models::framing::Framing;
use longwire_engine::models::rate::Serializer;
use longwire_engine::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos, Packets};

use super::{ArrivalModel, Arrivals, EvenClock, Load};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn ArrivalModel>> = Entry { info: INFO, build };

const INFO: ModelInfo = ModelInfo {
    name: "burst",
    summary: "back-to-back bursts of a fixed number of frames, at even intervals that keep the \
              mean rate",
    params: &[
        Param::new("frames", Unit::Packets).help("frames per burst, at least 1p"),
        Param::new("line", Unit::Rate).help(
            "rate within a burst, including Ethernet framing, such as 10gbit; default: infinite",
        ),
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn ArrivalModel>, SpecError> {
    let frames: Packets = arguments.required("frames")?;
    if frames.0 == 0 {
        return Err(arguments.invalid("frames=0p; the minimum is 1p"));
    }
    let line = arguments.optional("line")?;
    Ok(Box::new(Burst { frames, line }))
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    frames: Packets,
    line: Option<BitRate>,
}

impl ArrivalModel for Burst {
    fn begin(&self, load: Load) -> Box<dyn Arrivals> {
        Box::new(BurstArrivals {
            frames: self.frames.0,
            left: 0,
            begin: Nanos::ZERO,
            even: EvenClock::new(load.rate),
            line: Serializer::new(self.line, Framing::ETHERNET),
            free_at: Nanos::ZERO,
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "burst:frames={}", self.frames)?;
        match self.line {
            Some(line) => write!(f, ",line={line}"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug)]
struct BurstArrivals {
    frames: u64,
    /// Frames left in this burst.
    left: u64,
    /// Start of this burst.
    begin: Nanos,
    even: EvenClock,
    line: Serializer,
    /// Time at which the line becomes idle.
    free_at: Nanos,
}

impl Arrivals for BurstArrivals {
    fn due(&mut self, len: u32, _stream: &mut Stream) -> Nanos {
        let even = self.even.due(len);
        if self.left == 0 {
            self.left = self.frames;
            self.begin = even;
        }
        self.left -= 1;
        // A burst that takes longer on the line than its period delays the next burst.
        let due = self.begin.max(self.free_at);
        self.free_at = self.line.depart(due, len);
        due
    }
}
