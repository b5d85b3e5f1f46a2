//! One trial: frames of some sizes at some rate for some time, and their outcome.

use std::sync::Arc;

use crate::arrivals::{ArrivalModel, LoadRate};
use crate::sizes::SizeModel;
use longwire_engine::{BitRate, Nanos, PacketRate};

use super::error::ProfileError;
use crate::generator::{FlowConfig, MacAddress, VlanTag};
use longwire_runtime::Spread;

/// The frames that a trial sends.
#[derive(Clone, Debug)]
pub struct Trial {
    /// How long frames are; `None` is what the user's options say.
    pub sizes: Option<Arc<dyn SizeModel>>,
    /// How fast.
    pub rate: LoadRate,
    /// How they are spread; `None` is evenly.
    pub arrivals: Option<Arc<dyn ArrivalModel>>,
    /// For how long, or how many.
    pub length: Length,
    /// The marks and addresses of its frames.
    pub headers: Headers,
    /// Its purpose, for progress messages.
    pub purpose: String,
}

/// Header fields of a trial's frames, in place of those of the user's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// The outermost VLAN tag.
    pub vlan: Option<VlanTag>,
    /// The differentiated services code point.
    pub dscp: Option<u8>,
    /// The first source MAC address, and the number of them.
    pub sources: Option<(MacAddress, u64)>,
    /// The first destination MAC address, and the number of them.
    pub destinations: Option<(MacAddress, u64)>,
}

impl Headers {
    /// Writes them over what the user's options say.
    pub(super) fn apply(&self, flows: &mut FlowConfig) {
        if let Some(tag) = self.vlan {
            match flows.vlans.first_mut() {
                Some(first) => *first = tag,
                None => flows.vlans.push(tag),
            }
        }
        if let Some(dscp) = self.dscp {
            flows.dscp = dscp;
        }
        if let Some((first, count)) = self.sources {
            (flows.source_mac, flows.source_macs) = (first, count);
        }
        if let Some((first, count)) = self.destinations {
            (flows.destination_mac, flows.destination_macs) = (first, count);
        }
    }
}

/// When a trial ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After this time.
    Time(Nanos),
    /// After this many frames.
    Frames(u64),
}

/// The outcome of a trial.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Frames that really entered the device.
    pub sent: u64,
    /// Different frames that came out.
    pub received: u64,
    /// Their bytes, without frame check sequence.
    pub received_bytes: u64,
    /// From the first frame's arrival to the last one's, in seconds.
    pub duration_s: f64,
    /// Time from when a frame was due to its arrival, in microseconds.
    pub delay_us: Spread,
    /// Interarrival jitter (RFC 3550), in microseconds.
    pub jitter_us: f64,
    /// Frames that came after one sent later.
    pub reordered: u64,
    /// The reason why the rate asked for was not kept, if it was not.
    pub not_kept: Option<String>,
    /// Lost frames that generator or receiver may have caused: those sent so late
    /// that they came in an unintended burst, and those that the receiver had no room
    /// for.
    pub excusable: u64,
    /// Their cause.
    pub excuse: Option<String>,
}

/// The verdict of a trial on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No more loss than is acceptable, at the rate asked for.
    Passed,
    /// The device lost frames.
    Lost,
    /// No statement about the device, for this reason.
    Void(String),
}

impl Outcome {
    /// The number of frames that did not come out.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// The share of the frames sent that did not come out.
    pub fn loss(&self) -> f64 {
        match self.sent {
            0 => 0.0,
            sent => self.lost() as f64 / sent as f64,
        }
    }

    /// Returns the verdict on the device, with this share of loss acceptable.
    pub fn verdict(&self, acceptable_loss: f64) -> Verdict {
        if let Some(reason) = &self.not_kept {
            return Verdict::Void(reason.clone());
        }
        if self.sent == 0 {
            return Verdict::Void("nothing was sent".to_owned());
        }
        if self.loss() <= acceptable_loss {
            return Verdict::Passed;
        }
        let at_least = self.lost().saturating_sub(self.excusable);
        match &self.excuse {
            Some(excuse) if at_least as f64 / self.sent as f64 <= acceptable_loss => {
                Verdict::Void(excuse.clone())
            }
            _ => Verdict::Lost,
        }
    }
}

/// Makes trials.
pub trait Tester {
    /// The error of a trial that cannot be made.
    type Error: From<ProfileError>;

    /// Sends the frames of all of these trials at the same time, and waits for those
    /// that come out. Returns the outcome of each.
    ///
    /// # Errors
    /// If a port cannot be opened, the run cannot be started, or the user interrupts
    /// it.
    fn together(&mut self, trials: &[Trial]) -> Result<Vec<Outcome>, Self::Error>;

    /// Lets time pass in which nothing is sent.
    ///
    /// # Errors
    /// If the user interrupts it.
    fn pause(&mut self, time: Nanos) -> Result<(), Self::Error>;

    /// Makes one trial.
    ///
    /// # Errors
    /// As for [`Tester::together`].
    fn trial(&mut self, trial: &Trial) -> Result<Outcome, Self::Error> {
        let outcomes = self.together(std::slice::from_ref(trial))?;
        let outcome = outcomes.into_iter().next();
        outcome.ok_or_else(|| ProfileError::NoOutcome.into())
    }
}

/// A share of a rate, in parts per million: never zero.
pub(super) fn share(rate: LoadRate, parts_per_million: u32) -> LoadRate {
    let part = |whole: u64| {
        let part = u128::from(whole) * u128::from(parts_per_million) / 1_000_000;
        (part as u64).max(1)
    };
    match rate {
        LoadRate::Bits(bits, framing) => {
            let bits = BitRate::from_bits_per_sec(part(bits.bits_per_sec())).unwrap_or(bits);
            LoadRate::Bits(bits, framing)
        }
        LoadRate::Packets(packets) => {
            let part = part(packets.packets_per_kilosec());
            LoadRate::Packets(PacketRate::from_packets_per_kilosec(part).unwrap_or(packets))
        }
    }
}
