//! Time-division multiplexing: the link sends only in its slot of each period.

use super::varying::NANOBITS;
use super::{Rate, RateModel};
use crate::models::prelude::*;

pub(super) const ENTRY: Entry<Rate> = Entry::new(
    "tdm",
    "time-division multiplexing: frames wait for the link's next slot, even when it is idle (Rizzo \
     and Lettieri's TLEM, 2016)",
    &[
        Param::new("rate", Unit::Rate).help("rate within the slot"),
        Param::new("period", Unit::Time).help("time between the starts of slots"),
        Param::new("slot", Unit::Time).help("duration of a slot"),
        Param::with_default("offset", Unit::Time, "0")
            .help("start of the first slot, after the link starts"),
        // Text, because no example time fits every slot.
        Param::with_default("guard", Unit::Text("1ms"), "0")
            .help("guard time at the end of each slot, in which nothing is sent"),
        Param::with_default("partial", Unit::Choice(&["fragment", "whole"]), "fragment").help(
            "fragment: split a frame that does not fit into the rest of a slot; whole: send it in \
             the next slot; frames longer than a slot are always split",
        ),
    ],
    build,
);

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let time = |key| arguments.required::<Nanos>(key).map(Nanos::as_nanos);
    let (period, slot, guard) = (time("period")?, time("slot")?, time("guard")?);
    if period == 0 || slot > period {
        let (slot, period) = (Nanos::from_nanos(slot), Nanos::from_nanos(period));
        let message = format!("slot={slot} is longer than period={period}, or period is 0");
        return Err(arguments.invalid(message));
    }
    if guard >= slot {
        let (slot, guard) = (Nanos::from_nanos(slot), Nanos::from_nanos(guard));
        let message = format!("guard={guard} leaves no time in slot={slot}; shorten it");
        return Err(arguments.invalid(message));
    }
    let text = format!(
        "tdm:{},guard={},{}",
        arguments.pairs(["rate", "period", "slot", "offset"]),
        Nanos::from_nanos(guard),
        arguments.pairs(["partial"])
    );
    let model = Tdm {
        rate: arguments.required("rate")?,
        period,
        slot,
        guard,
        offset: time("offset")?,
        whole: arguments.choice("partial")? == 1,
        epoch: 0,
        begin: 0,
        at: 0,
        carry: 0,
    };
    Ok(Rate::Model(Described::new(text, Box::new(model))))
}

/// A link that sends only in its slots. Exact: the last departure is at `at + carry / rate`.
#[derive(Clone, Debug)]
struct Tdm {
    rate: BitRate,
    period: u64,
    slot: u64,
    guard: u64,
    offset: u64,
    whole: bool,
    /// Start of the first slot.
    epoch: u64,
    /// Start of the slot that contains or follows `at`; times are relative to the first slot.
    begin: u64,
    at: u64,
    carry: u64,
}

impl Tdm {
    /// Returns the usable part of a slot, in nanoseconds.
    fn open(&self) -> u64 {
        self.slot - self.guard
    }

    /// Returns the time at which the slot at `begin` closes.
    fn end(&self) -> u64 {
        self.begin.saturating_add(self.open())
    }

    /// Advances to the earliest time within a slot, at or after `since`.
    #[inline]
    fn seek(&mut self, since: u64) -> u64 {
        let inside = since.wrapping_sub(self.begin);
        if since >= self.begin && inside < self.open() {
            return since;
        }
        if since >= self.begin {
            let slots = if inside < self.period {
                // Avoids the division for the next slot.
                0
            } else {
                inside / self.period
            };
            self.begin = self.begin.saturating_add(slots * self.period);
            if since - self.begin >= self.open() {
                self.begin = self.begin.saturating_add(self.period);
            }
        }
        since.max(self.begin)
    }

    fn since(&self, at: Nanos) -> u64 {
        at.as_nanos().saturating_sub(self.epoch)
    }

    fn instant(&self, since: u64) -> Nanos {
        Nanos::from_nanos(self.epoch.saturating_add(since))
    }

    /// Sends work that exceeds the remainder of the slot, in billionths of a bit.
    #[cold]
    fn cross(&mut self, work: u128) -> u64 {
        let rate = u128::from(self.rate.bits_per_sec());
        let slot = rate * u128::from(self.open());
        let left = u128::from(self.end() - self.at) * rate - u128::from(self.carry);
        if work <= left {
            let total = work + u128::from(self.carry);
            self.carry = (total % rate) as u64;
            self.at += (total / rate) as u64;
            return self.at;
        }
        // A frame that must not be split leaves the remainder of this slot unused. Any other frame
        // uses it, then whole slots, then part of a last slot.
        let remaining = if self.whole && work <= slot {
            work
        } else {
            work - left
        };
        let slots = (remaining - 1) / slot;
        let rest = remaining - slots * slot;
        let later = (slots + 1).saturating_mul(u128::from(self.period));
        let begin = u128::from(self.begin).saturating_add(later);
        self.begin = u64::try_from(begin).unwrap_or(u64::MAX);
        self.carry = (rest % rate) as u64;
        self.at = self.begin.saturating_add((rest / rate) as u64);
        self.at
    }
}

impl RateModel for Tdm {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch.as_nanos().saturating_add(self.offset);
    }

    #[inline]
    fn ready(&mut self, from: Nanos, _stream: &mut Stream) -> Nanos {
        let since = self.since(from);
        let ready = self.seek(since);
        self.instant(ready).max(from)
    }

    #[inline]
    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, _stream: &mut Stream) -> Nanos {
        let since = self.since(frame.at);
        let from = self.seek(since);
        if from == u64::MAX {
            return Nanos::MAX;
        }
        // At the exact departure time, the carried remainder has not been sent yet.
        if from > self.at {
            self.at = from;
            self.carry = 0;
        }
        let rate = self.rate.bits_per_sec();
        if let Some(work) = wire_bits.checked_mul(NANOBITS)
            && let Some(total) = work.checked_add(self.carry)
        {
            let nanos = total / rate;
            if nanos < self.end() - self.at {
                self.at += nanos;
                self.carry = total % rate;
                return self.instant(self.at);
            }
        }
        let departure = self.cross(u128::from(wire_bits) * u128::from(NANOBITS));
        self.instant(departure)
    }

    fn mean(&self) -> Option<BitRate> {
        let bits = u128::from(self.rate.bits_per_sec()) * u128::from(self.open());
        let rounded = (bits + u128::from(self.period / 2)) / u128::from(self.period);
        BitRate::from_bits_per_sec(rounded as u64)
    }
}
