//! Packet delivery opportunities, following mahimahi.

use longwire_units::parse_signed;

use super::{Rate, RateModel};
use crate::models::prelude::*;
use crate::trace::End;
use crate::trace::schedule::{OpportunityCursor, OpportunitySchedule, ScheduleReader};

pub(super) const ENTRY: Entry<Rate> = Entry::new(
    "mahimahi",
    "packet delivery opportunities from a file, one time in ms per line, with the semantics of \
     mahimahi's link shell (Netravali et al., USENIX ATC 2015)",
    &[
        Param::new("file", Unit::File("1\n1\n3\n10\n"))
            .help("trace: one opportunity per line, in whole milliseconds"),
        Param::with_default("end", Unit::Choice(&["loop", "stop"]), "loop")
            .help("after the last opportunity: repeat, or stop"),
        OPPORTUNITY,
        OVERHEAD,
    ],
    build,
);

/// Bytes per opportunity.
pub(super) const OPPORTUNITY: Param = Param::with_default("opportunity", Unit::Size, "1504b")
    .help("bytes per opportunity; mahimahi's 1504b are 1500 bytes of IP and a 4-byte TUN header");

/// Bytes added to each frame's length; may be negative.
pub(super) const OVERHEAD: Param = Param::with_default("overhead", Unit::Signed, "-10")
    .within("-65535", "65535", "-65535..65535")
    .help(
    "bytes added to each frame's length; -10 counts like mahimahi: without the 14-byte Ethernet \
     header, with the 4-byte TUN header",
);

/// mahimahi's opportunity size and per-frame overhead, the defaults of the two parameters.
const SIZE_USUAL: u64 = 1504;
const OVERHEAD_USUAL: i64 = -10;

/// Maximum bytes per opportunity: 1 GiB, beyond any practical use.
const OPPORTUNITY_MAX: u64 = 1 << 30;

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
    let model = Mahimahi {
        opportunities: Opportunities::new(schedule, size, end == End::Loop),
        overhead,
    };
    Ok(Rate::Model(Described::new(
        arguments.text(),
        Box::new(model),
    )))
}

/// Reads [`OPPORTUNITY`] and [`OVERHEAD`].
pub(super) fn sizes(arguments: &Arguments<'_>) -> Result<(u64, i64), SpecError> {
    let Bytes(size) = arguments.required(OPPORTUNITY.name)?;
    if size == 0 || size > OPPORTUNITY_MAX {
        let message = format!("opportunity={size}b is outside 1b..1gb");
        return Err(arguments.invalid(message));
    }
    let overhead = arguments.read(OVERHEAD.name, parse_signed)?;
    Ok((size, overhead))
}

/// Returns the bytes charged for a frame of `bits` on the wire; at least one.
#[inline]
pub(super) fn counted(bits: u64, overhead: i64) -> u64 {
    (bits / 8).saturating_add_signed(overhead).max(1)
}

/// Rate model that delivers frames at given opportunities.
#[derive(Clone, Debug)]
pub(crate) struct Mahimahi {
    opportunities: Opportunities,
    overhead: i64,
}

impl Mahimahi {
    /// Creates a model with mahimahi's opportunity size and overhead.
    pub fn usual(schedule: OpportunitySchedule, end: End) -> Mahimahi {
        Mahimahi {
            opportunities: Opportunities::new(schedule, SIZE_USUAL, end == End::Loop),
            overhead: OVERHEAD_USUAL,
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
}

/// Delivers frames in FIFO order, following mahimahi's `LinkQueue`:
///
/// * An opportunity delivers its bytes at one instant. Unused bytes are lost.
/// * A frame that needs more bytes continues at the next opportunity, and departs at the
///   opportunity that delivers its last byte. The remaining bytes of that opportunity go to the
///   next frame if it was already queued.
/// * A frame that arrives at the instant of an opportunity misses it.
#[derive(Clone, Debug)]
pub(super) struct Opportunities {
    schedule: OpportunitySchedule,
    repeats: bool,
    /// Bytes per opportunity.
    size: u64,
    epoch: u64,
    next: OpportunityCursor,
    /// Time of the opportunity used last, in nanoseconds after the epoch.
    current: u64,
    /// Bytes left in that opportunity.
    left: u64,
}

impl Opportunities {
    /// Creates a schedule of opportunities of `size` bytes.
    pub fn new(schedule: OpportunitySchedule, size: u64, repeats: bool) -> Opportunities {
        Opportunities {
            schedule,
            repeats,
            size,
            epoch: 0,
            next: OpportunityCursor::default(),
            current: 0,
            left: 0,
        }
    }

    /// Sets the schedule's origin.
    pub fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos();
    }

    /// Returns the next opportunity, at or after `from`, that has bytes left.
    #[inline]
    pub fn ready(&mut self, from: Nanos) -> Nanos {
        let since = self.since_epoch(from);
        if self.left > 0 && since <= self.current {
            return from.max(self.instant(Some(self.current)));
        }
        self.left = 0;
        self.schedule.skip(&mut self.next, since, self.repeats);
        self.instant(self.schedule.time(&self.next)).max(from)
    }

    /// Returns the time at which the last of `bytes` is delivered, for a frame that arrived at
    /// `arrival` and reached the head at `at`; [`Nanos::MAX`] means never.
    #[inline]
    pub fn deliver(&mut self, arrival: Nanos, at: Nanos, bytes: u64) -> Nanos {
        let arrival = self.since_epoch(arrival);
        let at = self.since_epoch(at);
        let mut need = bytes;
        if self.left > 0 && at <= self.current && arrival < self.current {
            let share = need.min(self.left);
            self.left -= share;
            need -= share;
            if need == 0 {
                return self.instant(Some(self.current));
            }
        }
        self.left = 0;
        let least = at.max(arrival.saturating_add(1));
        self.schedule.skip(&mut self.next, least, self.repeats);
        // Usually 1; avoids an expensive division.
        let count = if need <= self.size {
            1
        } else {
            need.div_ceil(self.size)
        };
        let last = self.schedule.take(&mut self.next, count, self.repeats);
        if let Some(last) = last {
            self.current = last;
            self.left = count * self.size - need;
        }
        self.instant(last)
    }

    /// Returns the mean rate over one period, with an error below 1 bit/s.
    pub fn mean(&self) -> Option<BitRate> {
        let bits = u128::from(self.schedule.count()) * u128::from(self.size) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.schedule.length().as_nanos());
        BitRate::from_bits_per_sec(u64::try_from(rate).ok()?)
    }

    fn since_epoch(&self, at: Nanos) -> u64 {
        at.as_nanos().saturating_sub(self.epoch)
    }

    fn instant(&self, since: Option<u64>) -> Nanos {
        let since = since.and_then(|since| self.epoch.checked_add(since));
        since.map_or(Nanos::MAX, Nanos::from_nanos)
    }
}
