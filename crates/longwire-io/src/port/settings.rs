//! What a port changes on its interface, and puts back.
//!
//! The kernel's own network stack is kept from speaking on it, and merged
//! frames are kept from ports that cannot carry them.
//!
//! The interface of a port usually has no addresses, and frames for other
//! stations are none of the stack's business. But IPv6 gives every interface
//! an address of its own accord, announces it, and answers: packets that the
//! emulated link never carried.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use crate::net::ethtool_guard::OffloadGuard;
use crate::net::interface::Interface;

/// What was changed on an interface for a port; put back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    // Both stay bound to the namespace that they were opened in.
    ipv6: Option<File>,
    _offloads: Option<OffloadGuard>,
}

impl Settings {
    /// Makes the changes to an interface of the calling thread's namespace,
    /// and says in `notes` what was done.
    pub(crate) fn apply(
        interface: &Interface,
        wanted: Wanted,
        notes: &mut Vec<String>,
    ) -> Settings {
        let offloads = match wanted.frames {
            Frames::AsTheyCome => None,
            Frames::Reversible => OffloadGuard::reversible(interface, notes).ok(),
            Frames::WireSize => OffloadGuard::wire_size(interface, notes).ok(),
        };
        let ipv6 = if wanted.quiet {
            quiet(&interface.name, notes)
        } else {
            None
        };
        Settings {
            ipv6,
            _offloads: offloads,
        }
    }
}

/// What a port wants of its interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The kernel's own stack is to be silent.
    pub(crate) quiet: bool,
    /// How long frames may be.
    pub(crate) frames: Frames,
}

/// How long the frames of an interface may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    /// However the device has them.
    AsTheyCome,
    /// Several wire frames may come as one, if they can be told apart again.
    Reversible,
    /// They are as long as on the wire.
    WireSize,
}

/// Switches IPv6 off on an interface where that loses nothing. Writing "0" to
/// the file switches it on again.
fn quiet(name: &str, notes: &mut Vec<String>) -> Option<File> {
    match disable_ipv6(name) {
        Ok(Ipv6::Disabled(file)) => {
            notes.push(format!(
                "{name}: IPv6 of the kernel's own stack switched off until the end"
            ));
            return Some(file);
        }
        Ok(Ipv6::Silent) => {}
        Ok(Ipv6::InUse) => notes.push(format!(
            "{name}: has IPv6 addresses of its own, so the kernel's own stack answers on it too"
        )),
        Err(error) => notes.push(format!(
            "{name}: IPv6 of the kernel's own stack could not be switched off ({error}); it may \
             send packets of its own"
        )),
    }
    None
}

impl Drop for Settings {
    fn drop(&mut self) {
        if let Some(file) = self.ipv6.take() {
            // Fails when the interface is gone, and the setting with it.
            let _ = file.write_at(b"0", 0);
        }
    }
}

enum Ipv6 {
    /// It is off already, or not there at all.
    Silent,
    /// It was switched off.
    Disabled(File),
    /// It has addresses that switching it off would lose.
    InUse,
}

fn disable_ipv6(name: &str) -> io::Result<Ipv6> {
    let path = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ipv6::Silent),
        Err(error) => return Err(error),
    };
    let mut value = [0];
    file.read_at(&mut value, 0)?;
    if value != *b"0" {
        return Ok(Ipv6::Silent);
    }
    if has_addresses(name) {
        return Ok(Ipv6::InUse);
    }
    file.write_at(b"1", 0)?;
    Ok(Ipv6::Disabled(file))
}

/// Whether an interface has IPv6 addresses other than the link-local one
/// that comes back by itself.
fn has_addresses(name: &str) -> bool {
    const LINK_SCOPE: &str = "20";
    // Address, interface number, prefix length, scope, flags, name.
    let table = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(5) == Some(&name) && fields.get(3) != Some(&LINK_SCOPE)
    })
}
