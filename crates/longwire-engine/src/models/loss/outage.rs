//! Periodic outages of the medium.

use alloc::format;
use core::fmt;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "outage",
    summary: "periodic outages: drops frames whose last bit enters the medium, or with at=entry \
              that arrive, during one",
    params: &[
        Param::new("period", Unit::Time).help("time between starts of outages"),
        Param::new("duration", Unit::Time).help("duration of each outage"),
        Param::with_default("offset", Unit::Time, "0ns")
            .help("start of the first outage, from the start of the link"),
        PLACE,
        ECN,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let outage = OutageLoss {
        period: arguments.required("period")?,
        duration: arguments.required("duration")?,
        offset: arguments.required("offset")?,
        first: Nanos::ZERO,
    };
    let OutageLoss {
        period, duration, ..
    } = outage;
    if period == Nanos::ZERO {
        return Err(arguments.invalid("period=0; the minimum is 1ns"));
    }
    if duration > period {
        let message = format!("duration={duration} is above period={period}");
        return Err(arguments.invalid(message));
    }
    placed(arguments, outage)
}

/// Loss in periodic outages.
#[derive(Clone, Copy, Debug)]
struct OutageLoss {
    period: Nanos,
    duration: Nanos,
    offset: Nanos,
    /// Start of the first outage.
    first: Nanos,
}

impl LossModel for OutageLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn start(&mut self, epoch: Nanos) {
        self.first = epoch.saturating_add(self.offset);
    }

    fn judge(&mut self, frame: &FrameContext<'_>, _stream: &mut Stream) -> LossDecision {
        let since = frame.at.as_nanos().checked_sub(self.first.as_nanos())?;
        let down = since % self.period.as_nanos() < self.duration.as_nanos();
        down.then_some(DropReason::Outage)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutageLoss {
            period,
            duration,
            offset,
            ..
        } = self;
        write!(
            f,
            "outage:period={period},duration={duration},offset={offset}"
        )
    }
}
