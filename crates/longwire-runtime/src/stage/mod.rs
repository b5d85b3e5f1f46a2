//! Stages of a direction: `ingress` reads, decides and puts frames on the delay line;
//! `egress` waits, sends and accounts.

mod account;
mod addresses;
mod admission;
mod arrival;
mod departures;
mod egress;
mod feeding;
mod icmp;
mod ingress;
mod lane;
mod order;
mod output;
mod own;
mod releases;
mod segments;
mod send_stamps;

pub(crate) use account::{Account, LateFrame, wire_frames_of};
pub(crate) use addresses::AddressWatch;
pub(crate) use departures::DeparturesShared;
pub(crate) use egress::RETRY_AFTER;
pub use egress::{Egress, EgressParts};
pub(crate) use feeding::{FeedShared, FeedStage, FeedStep, FeedingOutput};
pub(crate) use icmp::{Bells, IcmpSender, icmp_line};
pub use ingress::{Ingress, IngressParts, shares_memory};
pub use lane::LaneParts;
pub(crate) use order::{DeparturePlace, FeedNumbers, Turn};
pub(crate) use output::OutputStage;
pub(crate) use own::{CorrectionsShared, Judge, own};
pub use segments::CutForm;
pub(crate) use send_stamps::SendStampsShared;

use longwire_engine::Nanos;

/// The result of a stage's step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Frames processed.
    pub frames: usize,
    /// Time of the stage's next work, if known.
    pub next_at: Option<Nanos>,
    /// Whether the stage has ended.
    pub ended: bool,
}

/// Maximum number of frames per step, so that stages can share a thread.
pub const BURST: usize = 64;
