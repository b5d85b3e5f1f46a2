//! Stages of a direction: `ingress` reads, decides and puts frames on the delay line;
//! `egress` waits, sends and accounts.

mod account;
mod addresses;
mod admission;
mod decider;
mod departures;
mod egress;
mod feeding;
mod gated;
mod icmp;
mod ingress;
mod managed;
mod order;
mod own;
mod segments;
mod send_stamps;

pub(crate) use account::{Account, LateFrame, wire_frames_of};
pub(crate) use addresses::AddressWatch;
pub use decider::Decider;
pub(crate) use departures::DeparturesShared;
pub(crate) use egress::RETRY_AFTER;
pub use egress::{Egress, EgressParts};
pub(crate) use feeding::{FeedShared, FeedStage, FeedStep, FeedingOutput};
pub(crate) use icmp::{Bells, IcmpSender, icmp_line};
pub use ingress::{Ingress, IngressParts, shares_memory};
pub(crate) use order::{DeparturePlace, FeedNumbers, Turn};
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

/// Assigns the link to ingress if it decides at arrival, to egress if its queue decides
/// later.
pub(crate) fn place_link(decider: Decider) -> (Option<Decider>, Option<Decider>) {
    if decider.link.is_managed() {
        (None, Some(decider))
    } else {
        (Some(decider), None)
    }
}
