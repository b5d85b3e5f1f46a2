//! Packet delivery opportunities, used as mahimahi uses them.

use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use super::{Rate, RateModel};
use crate::models::Entry;
use crate::passing::Passing;
use crate::random::Stream;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::schedule::{Place, Schedule, ScheduleReader};
use crate::trace::{End, Written};
use crate::units::{BitRate, Bytes, Nanos, parse_signed};

/// The registry line.
pub const ENTRY: Entry<Rate> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "mahimahi",
    summary: "packet delivery opportunities from a file, a millisecond a line, used as mahimahi's \
              link shell does (Netravali et al., USENIX ATC 2015)",
    params: &[
        Param {
            name: "file",
            unit: Unit::File("1\n1\n3\n10\n"),
            default: None,
            help: "the trace: whole milliseconds, one opportunity a line",
        },
        Param {
            name: "end",
            unit: Unit::Choice(&["loop", "stop"]),
            default: Some("loop"),
            help: "what follows the last opportunity: the first again, or nothing",
        },
        OPPORTUNITY,
        OVERHEAD,
    ],
};

/// How much an opportunity delivers.
pub(super) const OPPORTUNITY: Param = Param {
    name: "opportunity",
    unit: Unit::Size,
    default: Some("1504b"),
    help: "what one opportunity delivers; mahimahi's 1504b are 1500 of IP and 4 of its TUN header",
};

/// What a frame counts against it.
pub(super) const OVERHEAD: Param = Param {
    name: "overhead",
    unit: Unit::Signed,
    default: Some("-10"),
    help: "bytes added to each frame as it is counted; -10 is mahimahi's count: 14 less of \
           Ethernet, 4 more of TUN header",
};

/// What mahimahi's own opportunities deliver, in bytes, and what it counts for
/// a frame beside its length: the defaults of the two parameters.
const SIZE_USUAL: u64 = 1504;
const OVERHEAD_USUAL: i64 = -10;

/// The most bytes of an opportunity: 1 GiB, beyond all use.
const OPPORTUNITY_MAX: u64 = 1 << 30;

/// The most that an overhead adds or takes away.
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
    let written = Written::of(arguments, &INFO);
    let opportunities = Opportunities::new(schedule, end, size, overhead, written);
    Ok(Rate::Model(Box::new(opportunities)))
}

/// Reads [`OPPORTUNITY`] and [`OVERHEAD`].
pub(super) fn sizes(arguments: &Arguments<'_>) -> Result<(u64, i64), SpecError> {
    let Bytes(size) = arguments.required(OPPORTUNITY.name)?;
    if size == 0 || size > OPPORTUNITY_MAX {
        let message = format!("opportunity={size}b is outside 1b..1gb");
        return Err(arguments.unfit(message));
    }
    let overhead = arguments.read(OVERHEAD.name, parse_signed)?;
    if overhead.abs() > OVERHEAD_MAX {
        let message = format!("overhead={overhead} is outside -{OVERHEAD_MAX}..{OVERHEAD_MAX}");
        return Err(arguments.unfit(message));
    }
    Ok((size, overhead))
}

/// What a frame of `bits` on the wire counts, never less than a byte.
#[inline]
pub(super) fn counted(bits: u64, overhead: i64) -> u64 {
    (bits / 8).saturating_add_signed(overhead).max(1)
}

/// Delivers frames at opportunities, by the rule of mahimahi's `LinkQueue`:
///
/// * An opportunity delivers its bytes at its instant. Bytes that no frame
///   waits for are lost.
/// * A frame that needs more bytes goes on with the next opportunity, and
///   departs at the one that brings its last byte. What that one has left
///   goes to the frame behind it, if it was already waiting.
/// * A frame that arrives at the very instant of an opportunity has missed
///   it.
#[derive(Debug)]
pub(crate) struct Opportunities {
    schedule: Schedule,
    repeats: bool,
    size: u64,
    overhead: i64,
    epoch: u64,
    next: Place,
    /// When the opportunity that was used last came, and the bytes it has
    /// left.
    current: u64,
    left: u64,
    written: Written,
}

impl Opportunities {
    pub fn new(
        schedule: Schedule,
        end: End,
        size: u64,
        overhead: i64,
        written: Written,
    ) -> Opportunities {
        Opportunities {
            schedule,
            repeats: end == End::Loop,
            size,
            overhead,
            epoch: 0,
            next: Place::default(),
            current: 0,
            left: 0,
            written,
        }
    }

    /// Opportunities of the size that mahimahi gives them, and frames counted
    /// as it counts them.
    pub fn usual(schedule: Schedule, end: End, written: Written) -> Opportunities {
        Opportunities::new(schedule, end, SIZE_USUAL, OVERHEAD_USUAL, written)
    }

    fn since_epoch(&self, at: Nanos) -> u64 {
        at.as_nanos().saturating_sub(self.epoch)
    }

    fn instant(&self, since: Option<u64>) -> Nanos {
        let since = since.and_then(|since| self.epoch.checked_add(since));
        since.map_or(Nanos::MAX, Nanos::from_nanos)
    }
}

impl RateModel for Opportunities {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos();
    }

    #[inline]
    fn ready(&mut self, from: Nanos, _stream: &mut Stream) -> Nanos {
        let since = self.since_epoch(from);
        if self.left > 0 && since <= self.current {
            return from.max(self.instant(Some(self.current)));
        }
        self.left = 0;
        self.schedule.skip(&mut self.next, since, self.repeats);
        self.instant(self.schedule.time(&self.next)).max(from)
    }

    #[inline]
    fn serve(&mut self, frame: &Passing<'_>, wire_bits: u64, _stream: &mut Stream) -> Nanos {
        let at = self.since_epoch(frame.at);
        let arrival = self.since_epoch(frame.frame.arrival);
        let mut need = counted(wire_bits, self.overhead);
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
        // Mostly one, and a division is dear.
        let count = match need <= self.size {
            true => 1,
            false => need.div_ceil(self.size),
        };
        let last = self.schedule.take(&mut self.next, count, self.repeats);
        if let Some(last) = last {
            self.current = last;
            self.left = count * self.size - need;
        }
        self.instant(last)
    }

    /// All bytes of a lap over its time, exact but for less than 1 bit/s.
    fn mean(&self) -> Option<BitRate> {
        let bits = u128::from(self.schedule.count()) * u128::from(self.size) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.schedule.length().as_nanos());
        BitRate::from_bits_per_sec(u64::try_from(rate).ok()?)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.written, f)
    }
}
