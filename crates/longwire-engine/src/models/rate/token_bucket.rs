//! Token bucket: tokens saved while idle allow a burst.

use super::varying::divide;
use super::{Rate, RateModel};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Rate> = Entry::new(
    "token-bucket",
    "a frame leaves once the bucket holds tokens for its bytes (Turner 1986); with tick, tokens \
     arrive at intervals, as in DEMU (Puakalong et al.)",
    &[
        Param::new("rate", Unit::Rate).help("token rate"),
        Param::new("burst", Unit::Size).help(
            "bucket size; the bucket starts full. A frame longer than the bucket leaves when the \
             bucket is full, and its deficit is repaid first",
        ),
        Param::new("peak", Unit::Rate).help("rate of the line after the bucket; default: infinite"),
        Param::with_default("tick", Unit::Time, "0")
            .help("interval at which tokens arrive, such as DEMU's 1us; 0: continuously"),
    ],
    build,
);

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let rate: BitRate = arguments.required("rate")?;
    let peak: Option<BitRate> = arguments.optional("peak")?;
    let burst: Bytes = arguments.required("burst")?;
    if let Some(peak) = peak.filter(|peak| *peak < rate) {
        return Err(arguments.invalid(format!("peak={peak} is below rate={rate}")));
    }
    if burst.0 == 0 {
        return Err(arguments.invalid("burst=0 passes no frames; the minimum is 1b"));
    }
    let tick: Nanos = arguments.required("tick")?;
    let bucket = TokenBucket {
        tokens: RateClock::new(rate),
        line: peak.map(|peak| OutputLine::new(rate, peak)),
        full: RateClock::new(rate).time(burst.0 * 8),
        tick: tick.as_nanos(),
        epoch: 0,
        full_at: Moment::ZERO,
    };
    Ok(Rate::Model(arguments.described(Box::new(bucket))))
}

/// An exact instant or duration on a clock for `rate`: `nanos + part / rate`, with `part < rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    nanos: u64,
    part: u64,
}

impl Moment {
    const ZERO: Moment = Moment { nanos: 0, part: 0 };

    fn whole(nanos: u64) -> Moment {
        Moment { nanos, part: 0 }
    }

    /// Rounds up to whole nanoseconds.
    fn ceil(self) -> u64 {
        self.nanos.saturating_add(u64::from(self.part > 0))
    }
}

/// A clock that counts nanoseconds and fractions of them in units of 1 / rate.
#[derive(Clone, Debug)]
struct RateClock {
    rate: BitRate,
    /// Most recent frame length in bits and its time: lengths repeat.
    last: (u64, Moment),
}

impl RateClock {
    fn new(rate: BitRate) -> RateClock {
        RateClock {
            rate,
            last: (0, Moment::ZERO),
        }
    }

    /// Returns the serialisation time of `bits`.
    #[inline]
    fn time(&mut self, bits: u64) -> Moment {
        if bits != self.last.0 {
            let (nanos, part) = divide(bits, 0, self.rate);
            self.last = (bits, Moment { nanos, part });
        }
        self.last.1
    }

    #[inline]
    fn add(&self, instant: Moment, time: Moment) -> Moment {
        let part = instant.part + time.part;
        let carry = part >= self.rate.bits_per_sec();
        let nanos = instant.nanos.saturating_add(time.nanos);
        Moment {
            nanos: nanos.saturating_add(u64::from(carry)),
            part: part - if carry { self.rate.bits_per_sec() } else { 0 },
        }
    }

    /// Returns the difference, saturating at zero.
    #[inline]
    fn subtract(&self, instant: Moment, time: Moment) -> Moment {
        if instant <= time {
            return Moment::ZERO;
        }
        let borrow = instant.part < time.part;
        Moment {
            nanos: instant.nanos - time.nanos - u64::from(borrow),
            part: instant.part + if borrow { self.rate.bits_per_sec() } else { 0 } - time.part,
        }
    }
}

/// Output line after the bucket, on a clock that is exact for both rates. A frame starts once both
/// the bucket and the line allow it.
#[derive(Clone, Debug)]
struct OutputLine {
    clock: RateClock,
    /// The bucket's rate.
    tokens: u128,
    /// Time at which the line becomes free: nanoseconds, and a fraction in units of 1 / (bucket
    /// rate × line rate).
    free: (u64, u128),
}

impl OutputLine {
    fn new(tokens: BitRate, peak: BitRate) -> OutputLine {
        OutputLine {
            clock: RateClock::new(peak),
            tokens: u128::from(tokens.bits_per_sec()),
            free: (0, 0),
        }
    }

    /// Sends a frame whose tokens are available at `start`, and returns its departure, rounded
    /// down.
    #[inline]
    fn depart(&mut self, start: Moment, bits: u64) -> u64 {
        let peak = u128::from(self.clock.rate.bits_per_sec());
        // Rates are below 2^44, so products fit in 128 bits.
        let begin = (start.nanos, u128::from(start.part) * peak).max(self.free);
        let time = self.clock.time(bits);
        let part = begin.1 + u128::from(time.part) * self.tokens;
        let carry = part >= peak * self.tokens;
        let nanos = begin.0.saturating_add(time.nanos);
        self.free = if carry {
            (nanos.saturating_add(1), part - peak * self.tokens)
        } else {
            (nanos, part)
        };
        self.free.0
    }
}

/// A token bucket. Its state is the time at which it would be full if nothing else were sent
/// (generic cell rate algorithm, ITU-T I.371): exact, and without a timer.
#[derive(Clone, Debug)]
struct TokenBucket {
    tokens: RateClock,
    /// Output line after the bucket, unless infinitely fast.
    line: Option<OutputLine>,
    /// Time to fill an empty bucket.
    full: Moment,
    tick: u64,
    epoch: u64,
    full_at: Moment,
}

impl TokenBucket {
    /// Returns the first tick at or after `instant`.
    fn tick_from(&self, instant: Moment) -> Moment {
        match self.tick {
            0 => instant,
            tick => {
                let ticks = instant.ceil().div_ceil(tick);
                Moment::whole(ticks.saturating_mul(tick))
            }
        }
    }

    /// Takes a frame's tokens as soon as they are available and returns that time.
    #[inline]
    fn take(&mut self, from: u64, bits: u64) -> Moment {
        let time = self.tokens.time(bits);
        // Time at which the bucket contains the frame's tokens, or is full if the frame needs more.
        let enough = self.tokens.add(self.full_at, time.min(self.full));
        let enough = self.tokens.subtract(enough, self.full);
        let start = self.tick_from(enough).max(Moment::whole(from));
        // No tokens have been added since the last tick.
        let counted = match self.tick {
            0 => start,
            tick => Moment::whole(start.nanos - start.nanos % tick),
        };
        self.full_at = self.tokens.add(self.full_at.max(counted), time);
        start
    }
}

impl RateModel for TokenBucket {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos();
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, _stream: &mut Stream) -> Nanos {
        let from = frame.at.as_nanos().saturating_sub(self.epoch);
        let start = self.take(from, wire_bits);
        let departure = match &mut self.line {
            None => start.nanos,
            Some(line) => line.depart(start, wire_bits),
        };
        Nanos::from_nanos(self.epoch.saturating_add(departure))
    }

    fn mean(&self) -> Option<BitRate> {
        Some(self.tokens.rate)
    }
}
