//! Rate: how fast the link serialises frames.

use core::fmt;

use crate::models::Entry;
use crate::models::framing::Framing;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::units::{BitRate, Nanos};

/// The registry line.
pub const ENTRY: Entry<Fixed> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "fixed",
    summary: "departure = max(departure of the frame before, arrival) + bits / rate, exactly: \
              the remainder is carried (Rizzo and Lettieri's TLEM, 2016)",
    params: &[Param {
        name: "rate",
        unit: Unit::Rate,
        default: None,
        help: "bits a second, framing included",
    }],
};

fn build(arguments: &Arguments) -> Result<Fixed, SpecError> {
    Ok(Fixed(arguments.required("rate")?))
}

/// A fixed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(pub BitRate);

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The serialiser of one link.
///
/// Exact: the true instant at which the link falls idle is
/// `free_at + remainder / rate` nanoseconds, with `remainder < rate`.
/// Departures are that instant rounded down, and no rounding is ever carried
/// on.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Option<BitRate>,
    framing: Framing,
    free_at: Nanos,
    remainder: u64,
    /// The last length with its quotient and remainder by the rate: traffic
    /// repeats its lengths, and a division is the dearest step of `depart`.
    last: Time,
}

/// The time one frame takes: `nanos + remainder / rate`.
#[derive(Clone, Copy, Debug)]
struct Time {
    len: u32,
    nanos: u64,
    remainder: u64,
}

impl Serializer {
    /// A link at this rate; `None` is infinitely fast.
    pub fn new(rate: Option<BitRate>, framing: Framing) -> Serializer {
        let mut serializer = Serializer {
            rate,
            framing,
            free_at: Nanos::ZERO,
            remainder: 0,
            last: Time {
                len: 0,
                nanos: 0,
                remainder: 0,
            },
        };
        if let Some(rate) = rate {
            serializer.last = serializer.time(0, rate);
        }
        serializer
    }

    /// Serialises one frame: when its last bit has left.
    ///
    /// Arrivals must not go back in time.
    #[inline]
    pub fn depart(&mut self, arrival: Nanos, len: u32) -> Nanos {
        let Some(rate) = self.rate else {
            return arrival;
        };
        if len != self.last.len {
            self.last = self.time(len, rate);
        }
        // The link is idle at `arrival` only if that lies after the exact
        // instant; at equality the carried remainder is still to be sent.
        if arrival > self.free_at {
            self.free_at = arrival;
            self.remainder = 0;
        }
        let mut nanos = self.last.nanos;
        let mut remainder = self.remainder + self.last.remainder;
        if remainder >= rate.bits_per_sec() {
            remainder -= rate.bits_per_sec();
            nanos += 1;
        }
        self.remainder = remainder;
        self.free_at = self.free_at.saturating_add(Nanos::from_nanos(nanos));
        self.free_at
    }

    fn time(&self, len: u32, rate: BitRate) -> Time {
        // At most 2^32 cells of 2^17 bytes: 128 bits for absurd framings.
        let scaled = u128::from(self.framing.wire_bits(len)) * u128::from(NANOS_PER_SEC);
        let rate = u128::from(rate.bits_per_sec());
        Time {
            len,
            nanos: u64::try_from(scaled / rate).unwrap_or(u64::MAX / 2),
            remainder: (scaled % rate) as u64,
        }
    }
}
