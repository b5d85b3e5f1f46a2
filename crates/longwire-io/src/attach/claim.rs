//! Claims: an attachment's place at its interface, for a later process to take over.

use crate::bpf::tcx::Hook;

use super::pins::Pins;
use super::{AttachError, AttachPlace};

/// The effect of a killed process on its link's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// Frames pass without the link.
    #[default]
    Open,
    /// Frames are dropped until a later process reattaches the link or removes its
    /// [`Pins`].
    Closed,
}

/// An attachment's place at its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachClaim {
    /// Sequence number among attachments of equal priority.
    pub serial: u16,
    /// Paths of its programs, if it fails closed.
    pub pins: Option<Pins>,
}

/// Returns the paths for an attachment: the claim's, or new ones. Removes a claim's paths
/// at another interface.
pub(super) fn pins(
    place: &AttachPlace<'_>,
    claim: Option<&AttachClaim>,
    index: u32,
) -> Result<Option<Pins>, AttachError> {
    let namespace = place.namespace.inode();
    let claimed = claim.and_then(|claim| claim.pins.as_ref());
    if let Some(pins) = claimed.filter(|pins| !pins.are_at(namespace, index)) {
        pins.remove()?;
    }
    let here = claimed.filter(|pins| pins.are_at(namespace, index));
    Ok(match place.fail {
        FailMode::Open => None,
        FailMode::Closed => here.cloned().or_else(|| Some(Pins::new(namespace, index))),
    })
}

/// Whether a claim's program is still at its hook.
pub(super) fn is_left(claim: Option<&AttachClaim>, hook: Hook) -> bool {
    let pins = claim.and_then(|claim| claim.pins.as_ref());
    pins.is_some_and(|pins| pins.left(hook).is_some())
}
