//! Increasing or decreasing rates.

use std::fmt::{self, Write};

use longwire_engine::frame_context::FrameContext;
use longwire_engine::models::Entry;
use longwire_engine::models::rate::{self, Rate};
use longwire_engine::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use longwire_packet::frame::FrameMeta;
use longwire_units::random::Stream;
use longwire_units::{Bytes, Nanos, Packets, Probability, parse_count};

use super::{ArrivalModel, Arrivals, Load};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn ArrivalModel>> = Entry { info: INFO, build };

const INFO: ModelInfo = ModelInfo {
    name: "ramp",
    summary: "ramps exactly between two shares of the rate, linearly or in steps, then stays \
              constant",
    params: &[
        Param::with_default("from", Unit::Probability, "0%").help("initial share of the rate"),
        Param::with_default("to", Unit::Probability, "100%").help("final share of the rate"),
        Param::new("time", Unit::Time).help("duration, at least 1us"),
        Param::with_default("steps", Unit::Count, "0").help(
            "number of equal steps, including the first and the last rate, 2 to 1000; 0: linear",
        ),
    ],
};

const STEPS_MAX: u64 = 1_000;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn ArrivalModel>, SpecError> {
    let ramp = RampModel {
        from: arguments.required("from")?,
        to: arguments.required("to")?,
        time: arguments.required("time")?,
        steps: arguments.read("steps", parse_count)?,
    };
    if ramp.steps == 1 || ramp.steps > STEPS_MAX {
        let steps = ramp.steps;
        let message = format!("steps={steps} is outside 2..{STEPS_MAX}; 0 is linear");
        return Err(arguments.invalid(message));
    }
    if ramp.time < Nanos::from_micros(1) {
        return Err(arguments.invalid("time is below the minimum of 1us"));
    }
    if ramp.from == Probability::ZERO && ramp.to == Probability::ZERO {
        return Err(arguments.invalid("from=0% and to=0% would send nothing; raise one"));
    }
    Ok(Box::new(ramp))
}

#[derive(Clone, Copy, Debug)]
struct RampModel {
    from: Probability,
    to: Probability,
    time: Nanos,
    steps: u64,
}

impl RampModel {
    /// Returns the rate over time, in the syntax of the rate model.
    fn course(&self, per_sec: u64) -> String {
        let whole = per_sec as f64;
        let (from, to) = (self.from.as_f64() * whole, self.to.as_f64() * whole);
        let rate = |share: f64| (from + (to - from) * share + 0.5) as u64;
        let mut text = String::from("steps:at=");
        let mut separator = "";
        if self.steps == 0 {
            let _ = write!(text, "0s/{}bit;{}/{}bit", rate(0.0), self.time, rate(1.0));
            return text + ",change=linear";
        }
        for step in 0..self.steps {
            let time = u128::from(self.time.as_nanos()) * u128::from(step) / u128::from(self.steps);
            let time = Nanos::from_nanos(time as u64);
            let share = step as f64 / (self.steps - 1) as f64;
            let _ = write!(text, "{separator}{time}/{}bit", rate(share));
            separator = ";";
        }
        text
    }
}

impl ArrivalModel for RampModel {
    fn begin(&self, load: Load) -> Box<dyn Arrivals> {
        let course = rate::KIND.parse(&self.course(load.rate.per_sec()));
        Box::new(RampArrivals {
            load,
            // Fails only if the rate is always below 1 bit/s.
            wire: course.ok(),
            next: Nanos::ZERO,
        })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to, time) = (self.from, self.to, self.time);
        write!(
            f,
            "ramp:from={from},to={to},time={time},steps={}",
            self.steps
        )
    }
}

#[derive(Clone, Debug)]
struct RampArrivals {
    load: Load,
    /// A saturated wire whose rate follows the ramp: a frame is due when the previous one departs.
    wire: Option<Rate>,
    next: Nanos,
}

impl Arrivals for RampArrivals {
    fn due(&mut self, len: u32, stream: &mut Stream) -> Nanos {
        let due = self.next;
        let Some(Rate::Model(wire)) = &mut self.wire else {
            return Nanos::MAX;
        };
        let at = wire.ready(due, stream);
        if at == Nanos::MAX {
            self.next = Nanos::MAX;
            return due;
        }
        let frame_context = FrameContext {
            frame: FrameMeta { arrival: at, len },
            at,
            bytes: &[],
            waiting: (Packets(0), Bytes(0)),
        };
        let work = self.load.rate.work(len);
        self.next = wire.serve(&frame_context, work, stream).max(due);
        due
    }
}
