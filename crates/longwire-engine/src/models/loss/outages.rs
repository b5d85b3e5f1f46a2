//! Outages of the medium: periodic, or at given times.

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::models::prelude::*;

pub(super) const OUTAGE: Entry<PlacedLoss> = Entry::new(
    "outage",
    "periodic outages. Drops frames whose last bit enters the medium during an outage; with \
     at=entry, drops frames that arrive during one",
    &[
        Param::new("period", Unit::Time).help("time from the start of one outage to the next"),
        Param::new("duration", Unit::Time).help("duration of each outage"),
        Param::with_default("offset", Unit::Time, "0ns")
            .help("start of the first outage, after the link starts"),
        PLACE,
        ECN,
    ],
    build_outage,
);

fn build_outage(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let (period, duration): (Nanos, Nanos) = (
        arguments.required("period")?,
        arguments.required("duration")?,
    );
    let offset = arguments.required("offset")?;
    if period == Nanos::ZERO {
        return Err(arguments.invalid("period=0; the minimum is 1ns"));
    }
    if duration > period {
        let message = format!("duration={duration} is above period={period}; shorten it");
        return Err(arguments.invalid(message));
    }
    let outages = vec![(0, duration.as_nanos())];
    placed(arguments, OutageLoss::new(outages, period, offset))
}

pub(super) const OUTAGES: Entry<PlacedLoss> = Entry::new(
    "outages",
    "outages at given times after the link starts. Drops frames whose last bit enters the medium \
     during an outage; with at=entry, drops frames that arrive during one",
    &[
        Param::new("schedule", Unit::Text("2ms/1ms;10ms/5ms"))
            .help("START/DURATION;START/DURATION…"),
        Param::with_default("repeat", Unit::Time, "0ns")
            .help("period of the schedule; 0: no repetition"),
        PLACE,
        ECN,
    ],
    build_outages,
);

fn build_outages(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let outages = read_outages(arguments.required_text("schedule")?);
    let outages = outages.map_err(|message| arguments.invalid(format!("schedule: {message}")))?;
    let repeat: Nanos = arguments.required("repeat")?;
    let end = outages.last().map_or(0, |(_, end)| *end);
    if repeat != Nanos::ZERO && repeat.as_nanos() < end {
        let end = Nanos::from_nanos(end);
        let message = format!("repeat={repeat} is before the end of the last outage, at {end}");
        return Err(arguments.invalid(message));
    }
    placed(arguments, OutageLoss::new(outages, repeat, Nanos::ZERO))
}

/// Parses the (start, end) pairs of outages, in order.
fn read_outages(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let mut outages: Vec<(u64, u64)> = Vec::new();
    for item in text.split(';').map(str::trim) {
        let Some((start, duration)) = item.split_once('/') else {
            return Err(format!(
                "'{item}' is not START/DURATION; for example: 10s/500ms"
            ));
        };
        let time = |text: &str| {
            let time = text.trim().parse::<Nanos>();
            time.map_err(|error| format!("'{item}': {error}"))
        };
        let start = time(start)?;
        let end = start.saturating_add(time(duration)?);
        if outages
            .last()
            .is_some_and(|(_, before)| start.as_nanos() < *before)
        {
            return Err(format!("'{item}' overlaps the previous outage"));
        }
        outages.push((start.as_nanos(), end.as_nanos()));
    }
    Ok(outages)
}

#[derive(Clone, Debug)]
struct OutageLoss {
    /// Start and end of each outage, after the origin.
    outages: Vec<(u64, u64)>,
    /// Period of the outages; 0: no repetition.
    repeat: Nanos,
    /// Time from the link's epoch to the origin.
    offset: Nanos,
    origin: Nanos,
    /// Index of the first outage that had not ended at the last frame; usually unchanged for the
    /// next frame.
    last: usize,
}

impl OutageLoss {
    fn new(outages: Vec<(u64, u64)>, repeat: Nanos, offset: Nanos) -> OutageLoss {
        OutageLoss {
            outages,
            repeat,
            offset,
            origin: offset,
            last: 0,
        }
    }
}

impl LossModel for OutageLoss {
    fn start(&mut self, epoch: Nanos) {
        self.origin = epoch.saturating_add(self.offset);
    }

    fn judge(&mut self, frame: &FrameContext<'_>, _stream: &mut Stream) -> LossDecision {
        let mut since = frame.at.as_nanos().checked_sub(self.origin.as_nanos())?;
        if self.repeat != Nanos::ZERO {
            since %= self.repeat.as_nanos();
        }
        // The first outage that has not ended.
        let ended = |index: usize| {
            self.outages
                .get(index)
                .is_some_and(|(_, end)| *end <= since)
        };
        if ended(self.last) || self.last > 0 && !ended(self.last - 1) {
            self.last = self.outages.partition_point(|(_, end)| *end <= since);
        }
        let (start, _) = self.outages.get(self.last)?;
        (*start <= since).then_some(DropReason::Outage)
    }
}
