//! A port's interface, and the settings that the port changes and restores.
//!
//! The kernel's network stack must not send on the interface, and merged frames must not reach
//! ports that cannot carry them.
//!
//! A port's interface usually has no addresses, and the stack ignores frames for other stations.
//! IPv6, however, automatically assigns an address, announces it and answers, with packets that the
//! emulated link never carried.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use super::PortError;
use super::lock::PortLock;
use crate::net::ethtool::Ethtool;
use crate::net::interface::{Interface, names_present};
use crate::net::record::{ChangedSettings, PortRecord, SettingsChange, Undo};
use crate::net::{NetError, offloads};

/// The lock on an interface and the settings changed for a port. Drop restores them; after SIGKILL,
/// the next port to be opened restores them.
#[derive(Debug)]
pub(crate) struct Settings {
    /// `None` for [`Settings::untouched`].
    _changed: Option<ChangedSettings>,
    // Dropped last, so that no other port changes the interface until then.
    _lock: PortLock,
}

impl Settings {
    /// Applies changes to an interface in the calling thread's namespace and reports them in
    /// `notes`.
    pub(crate) fn apply(
        interface: &Interface,
        quiets: bool,
        frames: Frames,
        lock: PortLock,
        notes: &mut Vec<String>,
    ) -> Settings {
        let name = &interface.name;
        let mut changing = PortRecord::begin(interface.index, name, quiets);
        if let Ok(ethtool) = &Ethtool::open() {
            match frames {
                Frames::AsTheyCome => {}
                // LRO is the only irreversible kind of merging: it loses frame boundaries.
                Frames::Reversible => {
                    offloads::switch_off(ethtool, name, &["rx-lro"], &mut changing, notes);
                }
                Frames::WireSize => offloads::wire_size(ethtool, interface, &mut changing, notes),
            }
        }
        if quiets {
            quiet(name, &mut changing, notes);
        }
        Settings {
            _changed: Some(changing.end(name)),
            _lock: lock,
        }
    }

    /// Leaves an interface's settings unchanged.
    pub(crate) fn untouched(lock: PortLock) -> Settings {
        Settings {
            _changed: None,
            _lock: lock,
        }
    }
}

/// Permitted frame lengths on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    /// As the device delivers them.
    AsTheyCome,
    /// Wire frames may be merged reversibly.
    Reversible,
    /// As on the wire.
    WireSize,
}

/// Disables IPv6 on an interface, unless addresses would be lost.
fn quiet(name: &str, changing: &mut SettingsChange, notes: &mut Vec<String>) {
    notes.extend(match disable_ipv6(name, changing) {
        Ok(note) => note.map(|note| format!("{name}: {note}")),
        Err(error) => Some(format!(
            "{name}: cannot disable the kernel's IPv6 on it ({error}); the kernel may send packets"
        )),
    });
}

/// Disables IPv6 unless addresses would be lost, and returns a note. `None` if the kernel has no
/// IPv6 on the interface or it is already disabled.
fn disable_ipv6(name: &str, changing: &mut SettingsChange) -> io::Result<Option<&'static str>> {
    let path = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut value = [0];
    file.read_at(&mut value, 0)?;
    if value != *b"0" {
        return Ok(None);
    }
    if has_addresses(name) {
        let note = "has IPv6 addresses, so the kernel's network stack answers too";
        return Ok(Some(note));
    }
    changing.note(name, Undo::Ipv6);
    file.write_at(b"1", 0)?;
    Ok(Some("disabled the kernel's IPv6 on it for the run"))
}

/// Returns whether an interface has IPv6 addresses other than the link-local one, which the kernel
/// restores itself.
fn has_addresses(name: &str) -> bool {
    const LINK_SCOPE: &str = "20";
    // Fields: address, interface number, prefix length, scope, flags, name.
    let table = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(5) == Some(&name) && fields.get(3) != Some(&LINK_SCOPE)
    })
}

/// Returns the interface with this name if it exists, is up, and carries Ethernet.
pub(crate) fn find_up(port: &str, name: &str) -> Result<Interface, PortError> {
    let interface = Interface::find(name).map_err(|error| match error {
        NetError::NoDevice { .. } => PortError::NoInterface {
            name: name.to_owned(),
            present: names_present(),
        },
        error => PortError::Failed {
            port: port.to_owned(),
            action: "looking up the interface",
            source: io::Error::other(error),
        },
    })?;
    if !interface.is_ethernet() {
        return Err(PortError::unsupported(port, "not an Ethernet interface"));
    }
    if !interface.up {
        return Err(PortError::Down {
            name: name.to_owned(),
        });
    }
    Ok(interface)
}
