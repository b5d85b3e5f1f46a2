//! Restoring what killed processes left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::directory::Directory;
use super::entry::{Entry, Undo, parse, written};
use super::{Record, own};
use crate::net::ethtool::Ethtool;
use crate::net::netns::{self, NamespaceId, NetNamespace};
use crate::net::{link, sysctl};

/// Restores the settings that killed processes left changed, in all network
/// namespaces that can be entered.
pub fn restore_leftovers() {
    let own = own();
    let directory = Directory::lock();
    restore_left(&directory, own.as_ref().and_then(Record::path), |_| false);
}

/// As [`restore_leftovers`], with the directory locked. Entries that are to be
/// kept are not restored; returns if there were any.
pub(super) fn restore_left(
    directory: &Directory,
    own: Option<&Path>,
    is_kept: impl Fn(&Entry) -> bool,
) -> bool {
    let left = directory.others(own).into_iter();
    let left: Vec<PathBuf> = left
        .filter(|(_, lives)| !lives)
        .map(|(path, _)| path)
        .collect();
    if left.is_empty() {
        return false;
    }
    let here = NamespaceId::current();
    let mut kept = false;
    let mut places = None;
    for path in left {
        let mut entries = parse(&fs::read_to_string(&path).unwrap_or_default());
        let count = entries.len();
        entries.retain(|entry| entry.undo.is_some());
        let (ours, mut others): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .partition(|entry| entry.namespace == here);
        for entry in ours.iter().rev() {
            match is_kept(entry) {
                true => kept = true,
                false => restore_here(entry),
            }
        }
        if !others.is_empty() {
            let places = places.get_or_insert_with(netns::visible);
            others.retain(|entry| !restore_there(entry, places));
        }
        let _ = if others.is_empty() || is_old(&path) {
            fs::remove_file(&path)
        } else if others.len() < count {
            fs::write(&path, written(&others))
        } else {
            Ok(())
        };
    }
    kept
}

/// Whether a record is so old that the namespaces that are left in it, which
/// have neither name nor process, will not be seen again.
fn is_old(path: &Path) -> bool {
    const KEPT: Duration = Duration::from_secs(24 * 3600);
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > KEPT)
}

/// Restores a setting of another namespace. Returns if it was done, or the
/// namespace is another by now.
fn restore_there(entry: &Entry, places: &[(u64, PathBuf)]) -> bool {
    let found = places
        .iter()
        .find(|(inode, _)| *inode == entry.namespace.inode);
    let Some((_, path)) = found else { return false };
    let restored = NetNamespace::at(path).and_then(|namespace| {
        namespace.run(|| {
            // Numbers of namespaces are used again, cookies are not.
            if NamespaceId::current() == entry.namespace {
                restore_here(entry);
            }
        })
    });
    restored.is_ok()
}

/// Restores a setting of the calling thread's namespace. Fails if the device
/// is gone, and the setting with it.
fn restore_here(entry: &Entry) {
    let device = &entry.device;
    if device.contains('/') {
        return;
    }
    let _ = match &entry.undo {
        None => Ok(()),
        Some(Undo::Ipv6) => sysctl::set(&format!("ipv6/conf/{device}/disable_ipv6"), "0"),
        Some(Undo::Feature(feature)) => {
            let _ = Ethtool::open().and_then(|ethtool| {
                ethtool.set_features(device, std::iter::once((feature.as_str(), true)))
            });
            Ok(())
        }
        Some(Undo::QueueLen(places)) => link::set_tx_queue_len(device, places.cast_unsigned()),
        Some(Undo::Down) => link::link_down(device),
    };
}
