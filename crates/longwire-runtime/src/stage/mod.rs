//! The stages of a direction: `ingress` reads, decides and puts on the delay
//! line; `egress` waits, sends and accounts.

mod account;
mod addresses;
mod admission;
mod decider;
mod departures;
mod egress;
mod feeding;
mod ingress;
mod managed;
mod own;
mod segments;
mod send_stamps;

pub(crate) use account::{Account, LateFrame};
pub(crate) use addresses::{AddressWatch, PortAddresses};
pub use decider::Decider;
pub(crate) use departures::DeparturesShared;
pub use egress::{Egress, EgressParts};
pub(crate) use feeding::{FeedShared, FeedStep, Feeding, FeedingOutput};
pub use ingress::{Ingress, IngressParts, shares_memory};
pub(crate) use own::{CorrectionsShared, Judge, own};
pub(crate) use send_stamps::SendStampsShared;

use longwire_engine::Nanos;

/// What one step of a stage came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Frames handled.
    pub frames: usize,
    /// When the stage has something to do next, if it knows.
    pub next_at: Option<Nanos>,
    /// The stage will never have anything to do again.
    pub ended: bool,
}

/// The most frames a stage handles in one step, so that stages that share a
/// thread take turns.
pub const BURST: usize = 64;

/// Which stage has the link: ingress if it decides as frames arrive, egress if
/// its queue decides later.
pub(crate) fn place_link(decider: Decider) -> (Option<Decider>, Option<Decider>) {
    match decider.link.is_managed() {
        false => (Some(decider), None),
        true => (None, Some(decider)),
    }
}
