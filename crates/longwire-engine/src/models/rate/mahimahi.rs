//! Packet delivery opportunities, with the rules of mahimahi.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use longwire_units::random::Stream;
use longwire_units::{BitRate, Bytes, Nanos, parse_signed};

use super::opportunities::Opportunities;
use super::{Rate, RateModel};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::schedule::{OpportunitySchedule, ScheduleReader};
use crate::trace::{End, ModelText};

/// Registry entry.
pub const ENTRY: Entry<Rate> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "mahimahi",
    summary: "packet delivery opportunities from a file, one time in ms per line, used like in \
              mahimahi's link shell (Netravali et al., USENIX ATC 2015)",
    params: &[
        Param::new("file", Unit::File("1\n1\n3\n10\n"))
            .help("trace: one opportunity per line, in whole milliseconds"),
        Param::with_default("end", Unit::Choice(&["loop", "stop"]), "loop")
            .help("after the last opportunity: repeat, or stop"),
        OPPORTUNITY,
        OVERHEAD,
    ],
};

/// Bytes per opportunity.
pub(super) const OPPORTUNITY: Param = Param::with_default("opportunity", Unit::Size, "1504b")
    .help("bytes per opportunity; mahimahi's 1504b are 1500 of IP and 4 of its TUN header");

/// Bytes added to each frame.
pub(super) const OVERHEAD: Param = Param::with_default("overhead", Unit::Signed, "-10").help(
    "bytes added to each frame's length; -10 counts like mahimahi: without 14 of Ethernet, with 4 \
     of the TUN header",
);

/// mahimahi's bytes per opportunity and overhead per frame: the defaults of the two
/// parameters.
const SIZE_USUAL: u64 = 1504;
const OVERHEAD_USUAL: i64 = -10;

/// Maximum bytes per opportunity: 1 GiB, beyond all use.
const OPPORTUNITY_MAX: u64 = 1 << 30;

/// Maximum absolute overhead.
const OVERHEAD_MAX: i64 = 65_535;

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let mut reader = ScheduleReader::default();
    arguments.lines("file", &mut |_, line| reader.line(line))?;
    let schedule = reader.finish();
    let schedule = schedule.map_err(|message| arguments.file_error("file", message))?;
    let end = match arguments.choice("end")? {
        0 => End::Loop,
        _ => End::Stop,
    };
    let (size, overhead) = sizes(arguments)?;
    let written = ModelText::of(arguments, &INFO);
    let opportunities = Opportunities::new(schedule, size, end == End::Loop);
    Ok(Rate::Model(Box::new(Mahimahi {
        opportunities,
        overhead,
        written,
    })))
}

/// Reads [`OPPORTUNITY`] and [`OVERHEAD`].
pub(super) fn sizes(arguments: &Arguments<'_>) -> Result<(u64, i64), SpecError> {
    let Bytes(size) = arguments.required(OPPORTUNITY.name)?;
    if size == 0 || size > OPPORTUNITY_MAX {
        let message = format!("opportunity={size}b is outside 1b..1gb");
        return Err(arguments.invalid(message));
    }
    let overhead = arguments.read(OVERHEAD.name, parse_signed)?;
    if overhead.abs() > OVERHEAD_MAX {
        let message = format!("overhead={overhead} is outside -{OVERHEAD_MAX}..{OVERHEAD_MAX}");
        return Err(arguments.invalid(message));
    }
    Ok((size, overhead))
}

/// Returns the counted bytes of a frame of `bits` on the wire; at least one.
#[inline]
pub(super) fn counted(bits: u64, overhead: i64) -> u64 {
    (bits / 8).saturating_add_signed(overhead).max(1)
}

/// A link that delivers frames at opportunities.
#[derive(Clone, Debug)]
pub(crate) struct Mahimahi {
    opportunities: Opportunities,
    overhead: i64,
    written: ModelText,
}

impl Mahimahi {
    /// Creates a link with mahimahi's opportunity size and overhead.
    pub fn usual(schedule: OpportunitySchedule, end: End, written: ModelText) -> Mahimahi {
        Mahimahi {
            opportunities: Opportunities::new(schedule, SIZE_USUAL, end == End::Loop),
            overhead: OVERHEAD_USUAL,
            written,
        }
    }
}

impl RateModel for Mahimahi {
    fn start(&mut self, epoch: Nanos) {
        self.opportunities.start(epoch);
    }

    #[inline]
    fn ready(&mut self, from: Nanos, _stream: &mut Stream) -> Nanos {
        self.opportunities.ready(from)
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, _stream: &mut Stream) -> Nanos {
        let bytes = counted(wire_bits, self.overhead);
        self.opportunities
            .deliver(frame.frame.arrival, frame.at, bytes)
    }

    fn mean(&self) -> Option<BitRate> {
        self.opportunities.mean()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.written, f)
    }
}
