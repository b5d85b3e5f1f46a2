//! Recorded rates.

use alloc::boxed::Box;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{BitRate, Nanos};

use super::mahimahi::Mahimahi;
use super::varying::{RateSource, RateStretch, TimedSource, Varying};
use super::{Rate, RateModel};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::{self, Cursor, End, FORMAT, ModelText, Recording, Series};

/// Registry entry.
pub const ENTRY: Entry<Rate> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "trace",
    summary: "recorded rate: a table of times and rates, a mahimahi trace, or another format \
              (docs/traces.md)",
    params: &[
        trace::FILE,
        trace::END,
        FORMAT,
        trace::TIME_COLUMN,
        trace::TIME_UNIT,
        Param::new("rate-column", Unit::Text("rate_mbps"))
            .help("column of rates, by name or number"),
        Param::new(
            "rate-unit",
            Unit::Choice(&["bit", "kbit", "mbit", "gbit", "byte", "kbyte", "mbyte"]),
        )
        .help("unit of rates, per second; default: that of the column's name or of the values"),
        trace::WHERE,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let end = End::read(arguments)?;
    let written = ModelText::of(arguments, &INFO);
    match trace::read_rates(arguments)? {
        Recording::Series(series) => {
            let mean = series.mean(end);
            if mean == 0 && end == End::Loop {
                let message = "all rates are 0; no frame would pass";
                return Err(arguments.file_error(trace::FILE.name, message));
            }
            Ok(Rate::Model(Box::new(TraceRate {
                mean: BitRate::from_bits_per_sec(mean),
                line: Varying::new(SeriesSource {
                    lap: (end == End::Loop && !series.is_constant())
                        .then(|| (series.length().as_nanos(), series.integral())),
                    series,
                    cursor: Cursor::default(),
                    end,
                }),
                written,
            })))
        }
        Recording::Schedule(schedule) => {
            if end == End::Hold {
                let message = "opportunities have no last rate; write end=loop or end=stop";
                return Err(arguments.invalid(message));
            }
            let model = Mahimahi::usual(schedule, end, written);
            Ok(Rate::Model(Box::new(model)))
        }
    }
}

/// A rate that follows a series.
#[derive(Clone, Debug)]
struct TraceRate {
    line: Varying<SeriesSource>,
    mean: Option<BitRate>,
    written: ModelText,
}

#[derive(Clone, Debug)]
struct SeriesSource {
    series: Series,
    cursor: Cursor,
    end: End,
    lap: Option<(u64, u128)>,
}

impl RateSource for SeriesSource {
    fn stretch(&mut self, since: u64, _stream: &mut Stream) -> RateStretch {
        RateStretch::of(&self.series, &mut self.cursor, since, self.end)
    }

    fn lap(&self) -> Option<(u64, u128)> {
        self.lap
    }
}

impl TimedSource for SeriesSource {
    fn stretch_at(&self, since: u64) -> RateStretch {
        RateStretch::of(&self.series, &mut self.cursor.clone(), since, self.end)
    }
}

impl RateModel for TraceRate {
    fn start(&mut self, epoch: Nanos) {
        self.line.start(epoch);
    }

    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        self.line.ready(from, stream)
    }

    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        self.line.serve(frame.at, wire_bits, stream)
    }

    fn unsent(&self, at: Nanos) -> Option<u128> {
        Some(self.line.unsent(at))
    }

    fn rewind(&mut self, at: Nanos) {
        self.line.rewind(at);
    }

    fn resume(&mut self, frame: &FrameContext<'_>, work: u128, stream: &mut Stream) -> Nanos {
        self.line.resume(frame.at, work, stream)
    }

    /// Returns the mean over the trace, or over its infinite continuation.
    fn mean(&self) -> Option<BitRate> {
        self.mean
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.written, f)
    }
}
