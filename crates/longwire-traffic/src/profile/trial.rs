//! Trials: frames sent at a rate, and the outcome.

use std::sync::Arc;

use longwire_engine::spec::SpecError;
use longwire_engine::{BitRate, Nanos, PacketRate};
use longwire_runtime::Spread;

use crate::arrivals::{ArrivalModel, LoadRate};
use crate::generator::{FlowConfig, GeneratorError, MacAddress, VlanTag};
use crate::receive::ReceiveError;
use crate::sizes::SizeModel;

/// Frames sent in a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Frame sizes; the user's options by default.
    pub sizes: Option<Arc<dyn SizeModel>>,
    /// Rate.
    pub rate: LoadRate,
    /// Arrivals; evenly spaced by default.
    pub arrivals: Option<Arc<dyn ArrivalModel>>,
    /// Duration or number of frames.
    pub length: Length,
    /// Header fields, such as DSCP and addresses.
    pub headers: Headers,
    /// Purpose, shown in progress messages.
    pub purpose: String,
}

/// Header fields that override the user's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Outermost VLAN tag.
    pub vlan: Option<VlanTag>,
    /// DSCP.
    pub dscp: Option<u8>,
    /// First source MAC address, and the number of addresses.
    pub sources: Option<(MacAddress, u64)>,
    /// First destination MAC address, and the number of addresses.
    pub destinations: Option<(MacAddress, u64)>,
}

impl Headers {
    /// Overrides header fields in `flows`.
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

/// Length of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Duration.
    Time(Nanos),
    /// Number of frames.
    Frames(u64),
}

/// Outcome of a trial.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Frames that entered the device.
    pub sent: u64,
    /// Distinct frames that left the device.
    pub received: u64,
    /// Bytes of the received frames, without FCS.
    pub received_bytes: u64,
    /// Time from the first arrival to the last, in seconds.
    pub duration_s: f64,
    /// Time from due time to arrival, in microseconds.
    pub delay_us: Spread,
    /// Interarrival jitter (RFC 3550), in microseconds.
    pub jitter_us: f64,
    /// Reordered frames.
    pub reordered: u64,
    /// Reason why the rate could not be kept, if so.
    pub not_kept: Option<String>,
    /// Upper bound on losses caused by generator or receiver: frames sent late (and therefore in
    /// bursts), unsent frames of concurrent trials, and frames that the receiver could not examine.
    pub excusable: u64,
    /// Reason for `excusable`.
    pub excuse: Option<String>,
}

/// A trial's verdict on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Loss was acceptable at the requested rate.
    Passed,
    /// The device lost too many frames.
    Lost,
    /// The trial is inconclusive, for this reason.
    Void(String),
}

impl Outcome {
    /// Returns the number of lost frames.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Returns the loss ratio.
    pub fn loss(&self) -> f64 {
        match self.sent {
            0 => 0.0,
            sent => self.lost() as f64 / sent as f64,
        }
    }

    /// Returns the verdict for an acceptable loss ratio.
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

/// Runs trials with a device.
pub trait Tester {
    /// Error of a trial that cannot be run.
    type Error: From<ProfileError>;

    /// Runs trials concurrently and returns each outcome.
    ///
    /// # Errors
    /// If a port cannot be opened, the run cannot be started, or the user interrupts it.
    fn together(&mut self, trials: &[Trial]) -> Result<Vec<Outcome>, Self::Error>;

    /// Waits without sending.
    ///
    /// # Errors
    /// If the user interrupts it.
    fn pause(&mut self, time: Nanos) -> Result<(), Self::Error>;

    /// Runs one trial.
    ///
    /// # Errors
    /// The errors of [`Tester::together`].
    fn trial(&mut self, trial: &Trial) -> Result<Outcome, Self::Error> {
        let outcomes = self.together(std::slice::from_ref(trial))?;
        let outcome = outcomes.into_iter().next();
        outcome.ok_or_else(|| ProfileError::NoOutcome.into())
    }
}

/// Returns a fraction of a rate, in parts per million; at least 1.
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

#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProfileError {
    #[error("{step}: the rate exceeds 10 Tbit/s; reduce CIR or EIR")]
    RateTooHigh { step: String },
    /// A trial's frames cannot be generated.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// A model used by the profile is invalid.
    #[error(transparent)]
    Model(Box<SpecError>),
    #[error("cannot receive on {port}: {source}")]
    Receive {
        port: String,
        source: Box<ReceiveError>,
    },
    #[error("a trial ended without an outcome")]
    NoOutcome,
    #[error("interrupted; no result")]
    Interrupted,
    /// A trial's run or receiver failed.
    #[error("{0}")]
    Run(String),
}

impl From<SpecError> for ProfileError {
    fn from(error: SpecError) -> ProfileError {
        ProfileError::Model(Box::new(error))
    }
}
