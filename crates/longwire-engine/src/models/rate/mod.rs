//! Rate: link speed and frame serialisation.

use core::{fmt, mem};

use dyn_clone::DynClone;

use crate::loader::Hook;
use crate::models::framing::Framing;
use crate::models::plugin::{FILE, NAME, OWN, PluginHook};
use crate::models::prelude::*;

mod cellreplay;
mod mahimahi;
mod markov;
mod ramp;
mod schedule;
mod serializer;
pub(crate) mod slots;
mod tdm;
mod token_bucket;
mod varying;
mod wifi;

pub use serializer::Serializer;
pub(crate) use serializer::{Backlog, FastRate};
use varying::NANOBITS;

/// A link's rate.
#[derive(Clone, Debug, Default)]
pub enum Rate {
    /// Infinite rate.
    #[default]
    Unlimited,
    /// Fixed rate.
    Fixed(BitRate),
    /// Rate model.
    Model(Described<dyn RateModel>),
}

/// A rate that varies or is intermittent.
///
/// The head of the queue is served in two steps: the link asks when service may begin, then serves
/// the frame from that instant on. Times never decrease. Departures are rounded down to nanoseconds
/// and the remainder is carried, so errors do not accumulate.
pub trait RateModel: DynClone + fmt::Debug + Send + Sync {
    /// Called once, before any other method. `epoch` is the origin of schedules.
    fn start(&mut self, _epoch: Nanos) {}

    /// Returns the earliest time, at or after `from`, at which the link may dequeue the next frame,
    /// such as the start of a slot. Called once per frame or aggregate. [`Nanos::MAX`] means never.
    fn ready(&mut self, from: Nanos, _stream: &mut Stream) -> Nanos {
        from
    }

    /// Returns the time at which the last bit of `wire_bits` (including framing) departs if service
    /// begins at `frame.at`, which is no earlier than the time returned by [`RateModel::ready`].
    /// [`Nanos::MAX`] means never.
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos;

    /// Returns the part of the last served frame that is unsent at `at`, before its departure, in
    /// billionths of a bit. `None` if unknown or if the model sends only whole frames: after a rate
    /// change, the frame is then sent again.
    fn unsent(&self, _at: Nanos) -> Option<u128> {
        None
    }

    /// Discards the part of the last frame's transmission that lies after `at`. The default does
    /// nothing: the next frame is served as if the transmission had completed.
    fn rewind(&mut self, _at: Nanos) {}

    /// Like [`RateModel::serve`], for the remainder of a frame that began at another rate; `work`
    /// is in billionths of a bit.
    fn resume(&mut self, frame: &FrameContext<'_>, work: u128, stream: &mut Stream) -> Nanos {
        self.serve(frame, whole_bits(work), stream)
    }

    /// Returns the end of a delay that the rate model adds to the last served frame, before the
    /// link's own delay. During it, the frame does not occupy the queue. A time before departure
    /// means no delay.
    fn passed_delay(&self) -> Nanos {
        Nanos::ZERO
    }

    /// Returns the aggregation limits: frames in an aggregate depart together.
    fn aggregate(&self) -> Aggregate {
        Aggregate::ONE
    }

    /// Whether the model reads frame bytes, which requires super-packets to be segmented first.
    fn reads_bytes(&self) -> bool {
        false
    }

    /// Returns the mean rate, for default queue limits and reports; `None` if unknown.
    fn mean(&self) -> Option<BitRate>;
}

dyn_clone::clone_trait_object!(RateModel);

/// Converts billionths of a bit to bits, rounding up.
fn whole_bits(work: u128) -> u64 {
    u64::try_from(work.div_ceil(u128::from(NANOBITS))).unwrap_or(u64::MAX)
}

/// Limits on one aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// Maximum number of frames.
    pub frames: u32,
    /// Maximum frame bytes, excluding framing. The first frame is always sent.
    pub bytes: u64,
}

impl Aggregate {
    /// No aggregation.
    pub const ONE: Aggregate = Aggregate {
        frames: 1,
        bytes: u64::MAX,
    };
}

impl Rate {
    /// Returns the rate, or the mean of a varying rate; `None` if infinite or unknown.
    pub fn bit_rate(&self) -> Option<BitRate> {
        match self {
            Rate::Unlimited => None,
            Rate::Fixed(rate) => Some(*rate),
            Rate::Model(model) => model.mean(),
        }
    }

    /// Whether frames are never queued.
    pub fn is_unlimited(&self) -> bool {
        matches!(self, Rate::Unlimited)
    }

    /// Returns the aggregation limits.
    pub fn aggregate(&self) -> Aggregate {
        match self {
            Rate::Unlimited | Rate::Fixed(_) => Aggregate::ONE,
            Rate::Model(model) => model.aggregate(),
        }
    }
}

impl From<Option<BitRate>> for Rate {
    fn from(rate: Option<BitRate>) -> Rate {
        rate.map_or(Rate::Unlimited, Rate::Fixed)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Unlimited => f.write_str("unlimited"),
            Rate::Fixed(rate) => rate.fmt(f),
            Rate::Model(model) => model.fmt(f),
        }
    }
}

/// A link's rate and its state.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    /// Infinite or fixed rate.
    exact: Serializer,
    /// Rate model, which replaces the serialiser.
    modelled: Option<Box<ModelState>>,
}

/// A rate model in use by a link.
#[derive(Clone, Debug)]
struct ModelState {
    model: Box<dyn RateModel>,
    framing: Framing,
    stream: Stream,
    free_at: Nanos,
    /// Model delay of the last served frame: from departure to [`RateModel::passed_delay`].
    delay: Nanos,
    /// Bits of the last served frame.
    bits: u64,
}

impl Transmitter {
    pub(crate) fn new(rate: Rate, framing: Framing, epoch: Nanos, stream: Stream) -> Transmitter {
        let (fixed, model) = match rate {
            Rate::Unlimited => (None, None),
            Rate::Fixed(rate) => (Some(rate), None),
            Rate::Model(model) => (None, Some(model.model)),
        };
        Transmitter {
            exact: Serializer::new(fixed, framing),
            modelled: model.map(|model| Box::new(ModelState::new(model, framing, stream, epoch))),
        }
    }

    /// Whether the rate is fixed and low enough that a frame of `len` bytes takes at least 2 ns.
    #[inline]
    pub(crate) fn takes_time(&self, len: u32) -> bool {
        let least = u64::from(len) * 8 * 1_000_000_000 / 2;
        self.fixed_rate()
            .is_some_and(|rate| rate.bits_per_sec() <= least)
    }

    /// Returns the model delay that follows the departure of the last served frame.
    #[inline]
    pub(crate) fn delay(&self) -> Nanos {
        let modelled = self.modelled.as_ref();
        modelled.map_or(Nanos::ZERO, |modelled| modelled.delay)
    }

    /// Returns the time at which the last bit of all served frames has departed, for rates without
    /// a model.
    #[inline]
    pub(crate) fn free_at(&self) -> Nanos {
        self.exact.free_at()
    }

    /// Returns the rate, if fixed.
    #[inline]
    pub(crate) fn fixed_rate(&self) -> Option<BitRate> {
        self.exact.rate().filter(|_| self.modelled.is_none())
    }

    /// Returns the serialiser, for rates without a model.
    #[inline]
    pub(crate) fn exact(&self) -> &Serializer {
        &self.exact
    }

    #[inline]
    pub(crate) fn exact_mut(&mut self) -> &mut Serializer {
        &mut self.exact
    }

    /// Whether the rate is a model.
    #[inline]
    pub(crate) fn is_modelled(&self) -> bool {
        self.modelled.is_some()
    }

    /// Returns the next dequeue time for a queue that has been non-empty since `waiting_since`.
    pub(crate) fn ready(&mut self, waiting_since: Nanos) -> Nanos {
        match &mut self.modelled {
            None => self.exact.free_at().max(waiting_since),
            Some(modelled) => {
                let from = modelled.free_at.max(waiting_since);
                modelled.model.ready(from, &mut modelled.stream)
            }
        }
    }

    /// Serves a frame dequeued at `frame.at` and returns its departure.
    pub(crate) fn serve(&mut self, frame: &FrameContext<'_>, len: u32) -> Nanos {
        match &mut self.modelled {
            None => self.exact.depart(frame.at, len),
            Some(modelled) => {
                let wire_bits = modelled.framing.wire_bits(len);
                modelled.serve(frame, wire_bits)
            }
        }
    }

    /// Sets the framing for later frames.
    pub(crate) fn set_framing(&mut self, framing: Framing) {
        self.exact.set_framing(framing);
        if let Some(modelled) = &mut self.modelled {
            modelled.framing = framing;
        }
    }

    /// Replaces the rate at `epoch`, while nothing is in service, and returns the old model.
    pub(crate) fn set_rate(
        &mut self,
        rate: Rate,
        epoch: Nanos,
        stream: Stream,
    ) -> Option<Box<dyn RateModel>> {
        let new = Transmitter::new(rate, self.exact.framing(), epoch, stream);
        let old = mem::replace(self, new);
        old.modelled.map(|old| old.model)
    }

    /// Returns the part of a frame or aggregate of `len` bytes in service that is unsent at `at`,
    /// in billionths of a bit.
    pub(crate) fn unsent(&self, at: Nanos, len: u32) -> u128 {
        let (known, bits) = match &self.modelled {
            None => (self.exact.unsent(at), self.exact.framing().wire_bits(len)),
            Some(modelled) => (modelled.model.unsent(at), modelled.bits),
        };
        known.unwrap_or(u128::from(bits) * u128::from(NANOBITS))
    }

    /// Returns the part of a departed frame that is unsent at `at`, in billionths of a bit. It may
    /// be positive, because departures are rounded down to nanoseconds.
    pub(crate) fn unsent_of_departed(&self, at: Nanos) -> u128 {
        let (free_at, unsent) = match &self.modelled {
            None => (self.exact.free_at(), self.exact.unsent(at)),
            Some(modelled) => (modelled.free_at, modelled.model.unsent(at)),
        };
        unsent.filter(|_| free_at >= at).unwrap_or(0)
    }

    /// Occupies the transmitter from `at` on with work that belongs to no queued frame, in
    /// billionths of a bit. Models that send only whole frames ignore it.
    pub(crate) fn occupy(&mut self, at: Nanos, work: u128) {
        match &mut self.modelled {
            None => drop(self.exact.resume(at, work)),
            Some(modelled) if work > 0 && modelled.model.unsent(at).is_some() => {
                modelled.resume(&FrameContext::alone(at, 0), work);
            }
            Some(_) => {}
        }
    }

    /// Serves the remainder of a frame from `frame.at` on and returns its departure.
    pub(crate) fn resume(&mut self, frame: &FrameContext<'_>, work: u128) -> Nanos {
        match &mut self.modelled {
            None => self.exact.resume(frame.at, work),
            Some(modelled) => modelled.resume(frame, work),
        }
    }

    /// Discards the frame in service at `at`.
    pub(crate) fn discard(&mut self, at: Nanos) {
        self.exact.resume(at, 0);
        if let Some(modelled) = &mut self.modelled {
            modelled.free_at = modelled.free_at.min(at);
            modelled.model.rewind(at);
        }
    }

    /// Returns the frames and bytes that, if served from `now` on, would depart within the same
    /// nanosecond. Models are not queried, because they may draw.
    pub(crate) fn gone_at_once(&self, now: Nanos, frames: impl Iterator<Item = u32>) -> (u64, u64) {
        let mut gone = (0, 0);
        if self.modelled.is_some() || self.exact.free_at() > now {
            return gone;
        }
        let mut trial = self.exact.clone();
        for len in frames {
            if trial.depart(now, len) > now {
                break;
            }
            gone = (gone.0 + 1, gone.1 + u64::from(len));
        }
        gone
    }

    /// Serves an aggregate of `wire_bits` and returns its departure.
    pub(crate) fn serve_bits(&mut self, first: &FrameContext<'_>, wire_bits: u64) -> Nanos {
        match &mut self.modelled {
            None => self.exact.free_at().max(first.at),
            Some(modelled) => modelled.serve(first, wire_bits),
        }
    }

    /// Whether the model reads frame bytes.
    pub(crate) fn reads_bytes(&self) -> bool {
        let modelled = self.modelled.as_ref();
        modelled.is_some_and(|modelled| modelled.model.reads_bytes())
    }

    /// Returns a frame's bits on the wire; without a rate model, excluding framing.
    pub(crate) fn wire_bits(&self, len: u32) -> u64 {
        match &self.modelled {
            None => u64::from(len) * 8,
            Some(modelled) => modelled.framing.wire_bits(len),
        }
    }

    /// Serves a frame in a FIFO without a rate model and returns its departure.
    #[inline(always)]
    pub(crate) fn depart_exactly(&mut self, arrival: Nanos, len: u32) -> Nanos {
        self.exact.depart(arrival, len)
    }

    /// Like [`Transmitter::depart_exactly`], using the model if there is one.
    #[inline]
    pub(crate) fn depart(&mut self, frame: &FrameContext<'_>) -> Nanos {
        match &mut self.modelled {
            None => self.exact.depart(frame.at, frame.frame.len),
            Some(modelled) => modelled.depart(frame),
        }
    }
}

impl ModelState {
    fn new(
        mut model: Box<dyn RateModel>,
        framing: Framing,
        stream: Stream,
        epoch: Nanos,
    ) -> ModelState {
        model.start(epoch);
        ModelState {
            model,
            framing,
            stream,
            free_at: epoch,
            delay: Nanos::ZERO,
            bits: 0,
        }
    }

    #[inline(never)]
    fn depart(&mut self, frame: &FrameContext<'_>) -> Nanos {
        let from = self.free_at.max(frame.at);
        let at = self.model.ready(from, &mut self.stream);
        let wire_bits = self.framing.wire_bits(frame.frame.len);
        self.serve(&FrameContext { at, ..*frame }, wire_bits)
    }

    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64) -> Nanos {
        self.bits = wire_bits;
        let departure = if frame.at == Nanos::MAX {
            Nanos::MAX
        } else {
            self.model.serve(frame, wire_bits, &mut self.stream)
        };
        self.departs(departure)
    }

    fn resume(&mut self, frame: &FrameContext<'_>, work: u128) -> Nanos {
        self.bits = whole_bits(work);
        let at = self.model.ready(frame.at, &mut self.stream);
        let departure = if at == Nanos::MAX {
            Nanos::MAX
        } else {
            let frame = FrameContext { at, ..*frame };
            self.model.resume(&frame, work, &mut self.stream)
        };
        self.departs(departure)
    }

    fn departs(&mut self, departure: Nanos) -> Nanos {
        self.free_at = self.free_at.max(departure);
        self.delay = self.model.passed_delay().saturating_sub(self.free_at);
        self.free_at
    }
}

const FIXED: Entry<Rate> = Entry::new(
    "fixed",
    "departure = max(departure of the previous frame, arrival) + bits / rate; the remainder is \
     carried, so the rate is exact (Rizzo and Lettieri's TLEM, 2016)",
    &[Param::new("rate", Unit::Rate).help("bit rate, including framing")],
    |arguments| Ok(Rate::Fixed(arguments.required("rate")?)),
);

const UNLIMITED: Entry<Rate> = Entry::new(
    "unlimited",
    "infinitely fast: a frame departs when it arrives",
    &[],
    |_| Ok(Rate::Unlimited),
);

const PLUGIN: Entry<Rate> = Entry::new(
    NAME,
    "departures from a C plugin's ready and depart hooks",
    &[FILE, OWN],
    |arguments| {
        let hook = PluginHook::load(arguments, Hook::Rate)?;
        Ok(Rate::Model(arguments.described(Box::new(hook))))
    },
);

impl RateModel for PluginHook {
    fn start(&mut self, epoch: Nanos) {
        PluginHook::start(self, epoch);
    }

    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        let state = self.state();
        state.map_or(from, |state| state.ready(from, stream))
    }

    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        let state = self.state();
        state.map_or(frame.at, |state| state.depart(frame, wire_bits, stream))
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    /// Returns the plugin's hint, which may be inexact.
    fn mean(&self) -> Option<BitRate> {
        self.hints.rate_mean
    }
}

/// Rate models.
pub static KIND: Kind<Rate> = Kind {
    name: "rate",
    example: "10mbit",
    entries: &[
        FIXED,
        UNLIMITED,
        schedule::STEPS,
        schedule::TRACE,
        mahimahi::ENTRY,
        cellreplay::ENTRY,
        tdm::ENTRY,
        slots::ENTRY,
        token_bucket::ENTRY,
        markov::TWO_STATE,
        markov::MARKOV,
        wifi::ENTRY,
        PLUGIN,
    ],
};
