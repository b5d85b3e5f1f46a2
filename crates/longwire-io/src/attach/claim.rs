//! Claims: the place of an attachment at its interface, which a later process takes over.

use crate::bpf::tcx::Hook;

use super::pins::Pins;
use super::{AttachError, AttachPlace};

/// The fate of the frames of a link whose process is killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// They pass without the link.
    #[default]
    Open,
    /// They do not pass, until a later process has attached the link again or removes its
    /// [`Pins`].
    Closed,
}

/// The place of an attachment at its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachClaim {
    /// The number among the attachments of one priority, the oldest first.
    pub serial: u16,
    /// The paths of its programs, for one that fails closed.
    pub pins: Option<Pins>,
}

/// Returns the paths for an attachment: those of its claim, or new ones. Paths of another
/// interface are removed.
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

/// Whether the program of a claim is at its hook.
pub(super) fn is_left(claim: Option<&AttachClaim>, hook: Hook) -> bool {
    let pins = claim.and_then(|claim| claim.pins.as_ref());
    pins.is_some_and(|pins| pins.left(hook).is_some())
}
