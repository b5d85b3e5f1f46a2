//! A direction's stages: `ingress` reads, decides and puts frames on the delay line; `egress`
//! waits, sends and accounts.

mod account;
mod addresses;
mod admission;
mod egress;
mod feeding;
mod ingress;
mod lane;
mod lateness;
mod output;
mod releases;
mod segments;

pub(crate) use account::{Account, LateFrame, wire_frames_of};
pub(crate) use addresses::AddressWatch;
pub(crate) use admission::AdmissionParts;
pub(crate) use egress::RETRY_AFTER;
pub use egress::{Egress, EgressParts};
pub(crate) use feeding::{FeedShared, FeedStage, FeedStep, FeedingOutput};
pub use ingress::{Ingress, shares_memory};
pub use lane::LaneParts;
pub(crate) use lane::{Bells, IcmpSender, icmp_line};
pub(crate) use lateness::{
    CorrectionsShared, DeparturesShared, Judge, NanosHistogram, SendStampsShared, own,
};
pub(crate) use output::{DeparturePlace, FeedNumbers, OutputStage, Turn};
pub(crate) use releases::SLACK_MAX;
pub use segments::CutForm;

use longwire_engine::Nanos;

/// Result of a stage's step.
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
