//! Fail-closed attachments: programs that outlive their process.
//!
//! The links of the programs at the interface are pinned in the BPF file system, so the kernel
//! keeps them. After the process ends, the programs still redirect frames, now to unread devices
//! that soon disappear, so nothing passes. No program is attached or replaced when the process
//! ends, so there is no gap. A later process takes the attachment over with a claim.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::devices::random;
use super::{AttachError, AttachPlace};
use crate::bpf::Link;
use crate::bpf::tcx::Hook;

/// Usual mount point of the BPF file system.
const MOUNTED_AT: &str = "/sys/fs/bpf";
/// Prefix of pin names.
const PREFIX: &str = "longwire";

/// The pins of one attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    name: String,
    /// Device number of the BPF file system, which can differ between mount namespaces.
    file_system: u64,
}

impl Pins {
    /// Returns unused pins for an attachment at this interface in a namespace.
    pub(super) fn new(namespace: u64, index: u32) -> Pins {
        let (file_system, number) = (mounted(), random() as u32);
        Pins {
            name: format!("{namespace}-{index}-{number}-{file_system}"),
            file_system,
        }
    }

    /// Returns whether the pins belong to an attachment at this interface.
    pub(super) fn are_at(&self, namespace: u64, index: u32) -> bool {
        self.name.starts_with(&format!("{namespace}-{index}-"))
    }

    /// Parses a name made by [`Pins::name`]; `None` if it is invalid.
    pub fn named(name: &str) -> Option<Pins> {
        let numbers: Result<Vec<u64>, _> = name.split('-').map(str::parse).collect();
        match numbers.as_deref() {
            Ok([_, _, _, file_system]) => Some(Pins {
                name: name.to_owned(),
                file_system: *file_system,
            }),
            _ => None,
        }
    }

    /// Returns the pins' name, which [`Pins::named`] parses.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that pinning is possible.
    ///
    /// # Errors
    /// The BPF file system is not mounted. The message says how to mount it.
    pub fn check() -> Result<(), AttachError> {
        match statfs(MOUNTED_AT) {
            Ok(found) if found.filesystem_type() == BPF_FS_MAGIC => Ok(()),
            _ => Err(AttachError::NoBpfFileSystem),
        }
    }

    fn path(&self, hook: Hook) -> PathBuf {
        let word = match hook {
            Hook::Ingress => "in",
            Hook::Egress => "out",
        };
        Path::new(MOUNTED_AT).join(format!("{PREFIX}-{}-{word}", self.name))
    }

    fn paths(&self) -> [PathBuf; 2] {
        [Hook::Ingress, Hook::Egress].map(|hook| self.path(hook))
    }

    /// Pins an attachment's links.
    pub(super) fn pin(&self, links: &mut [(Hook, Link)]) -> Result<(), AttachError> {
        Pins::check()?;
        for (hook, link) in links.iter_mut().filter(|(_, link)| !link.has_path()) {
            let path = self.path(*hook);
            // A detached link of an earlier process may be pinned at this path.
            let removed = match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            };
            let pinned = removed.and_then(|()| link.pin(&path));
            pinned.map_err(|source| AttachError::Pin { source })?;
        }
        Ok(())
    }

    /// Opens the link that an ended process left pinned for a hook; `None` if it is gone or
    /// detached.
    pub(super) fn left(&self, hook: Hook) -> Option<Link> {
        let link = Link::pinned(&self.path(hook)).ok()?;
        link.is_attached().ok()?.then_some(link)
    }

    /// Returns whether a program is still at the interface; `true` if the BPF file system is
    /// inaccessible.
    pub fn are_attached(&self) -> bool {
        let is_attached = |path: &PathBuf| match Link::pinned(path) {
            Ok(link) => link.is_attached().unwrap_or(true),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        mounted() != self.file_system || self.paths().iter().any(is_attached)
    }

    /// Removes the pinned programs, if any, from the interface.
    ///
    /// # Errors
    /// The BPF file system is not mounted here, or rights are missing.
    pub fn remove(&self) -> Result<(), AttachError> {
        Pins::check()?;
        if mounted() != self.file_system {
            return Err(AttachError::OtherBpfFileSystem);
        }
        for path in self.paths() {
            // Once unpinned, the link ends on drop.
            let removed = match Link::pinned(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                link => link.and_then(|mut link| link.unpin()),
            };
            removed.map_err(|source| AttachError::Pin { source })?;
        }
        Ok(())
    }
}

/// Returns the device number of the BPF mount point.
fn mounted() -> u64 {
    fs::metadata(MOUNTED_AT).map_or(0, |found| found.dev())
}

/// Fate of a link's frames after its process is killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// Frames pass without the link.
    #[default]
    Open,
    /// Frames are dropped until a later process reattaches the link or removes its [`Pins`].
    Closed,
}

/// An attachment's serial number and pins, with which a later process takes the attachment over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachClaim {
    /// Sequence number among attachments with the same priority.
    pub serial: u16,
    /// Paths of the programs' links, if the attachment fails closed.
    pub pins: Option<Pins>,
}

/// Returns an attachment's pins: the claim's, or new ones. Removes a claim's pins at another
/// interface.
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

/// Returns whether a claim's program is still at its hook.
pub(super) fn is_left(claim: Option<&AttachClaim>, hook: Hook) -> bool {
    let pins = claim.and_then(|claim| claim.pins.as_ref());
    pins.is_some_and(|pins| pins.left(hook).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_a_file_leads_nowhere_else() {
        let pins = Pins::new(4_026_532_288, 2);
        assert!(pins.are_at(4_026_532_288, 2) && !pins.are_at(4_026_532_288, 22));
        assert_eq!(Pins::named(pins.name()), Some(pins));
        for wrong in ["", "../x", "1-2-3-a", "1/2-3-4-5", "1-2-3"] {
            assert_eq!(Pins::named(wrong), None, "{wrong}");
        }
    }
}
