//! Devices of attachments: veth pairs between an interface's namespace and the hub.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::AttachError;
use super::given::GivenFrames;
use crate::net::interface::Interface;
use crate::net::veth::{self, End, VethConfig};
use crate::net::{NetError, NetNamespace, link, sctp_segmentation_off, sysctl};
use crate::port::options::OpenOptions;
use crate::port::registry::{self, Port};
use crate::port::{AnyTx, PortError};

/// MTU of the veth devices: the maximum, so that only the interface's own limits apply.
const MTU: u32 = 65_535;
/// Maximum number of device names to try.
const ATTEMPTS: u32 = 64;
/// Prefixes of attachments' device names.
pub(super) const INNER: &str = "lw-in";
pub(super) const OUTER: &str = "lw-out";
/// Prefix of ports' device names.
pub(super) const DEVICE: &str = "lw-port";
/// Maximum time for a new device's carrier to come up. It takes well under 1 ms.
const CARRIER_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns a descriptive device name for an interface, within the length limit.
fn name_of(prefix: &str, interface: u32, attempt: u32) -> String {
    match attempt {
        0 => format!("{prefix}{interface}"),
        _ => format!("{prefix}{interface}.{attempt}"),
    }
}

/// Returns whether an interface with this name is a device of an attachment.
pub fn is_device_of_link(name: &str) -> bool {
    let prefixes = [INNER, OUTER, DEVICE];
    let number = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

/// Disables IPv6 on new devices in the calling thread's namespace, so that the kernel sends no
/// packets through them.
pub(super) fn quiet() -> Result<(), NetError> {
    match sysctl::set("ipv6/conf/default/disable_ipv6", "1") {
        // Without IPv6, or with read-only settings (containers), each device is configured
        // separately.
        Err(error) => match error.io().map(io::Error::kind) {
            Some(io::ErrorKind::NotFound | io::ErrorKind::ReadOnlyFilesystem) => Ok(()),
            _ => Err(error),
        },
        Ok(()) => Ok(()),
    }
}

/// Creates veth pairs between a namespace and the hub. Returns their names and the device indices
/// in the namespace. A name may be in use by another port, or by an ended attachment whose devices
/// the kernel has not yet removed; further names are then tried.
pub(super) fn make_devices<const N: usize>(
    namespace: &NetNamespace,
    interface: &Interface,
    hub: &NetNamespace,
    prefixes: [&str; N],
) -> Result<([String; N], [u32; N]), AttachError> {
    let exists =
        |error: &NetError| error.io().map(io::Error::kind) == Some(io::ErrorKind::AlreadyExists);
    let mut attempt = 0;
    loop {
        let names = prefixes.map(|prefix| name_of(prefix, interface.index, attempt));
        match namespace.run(|| make_pairs(&names, hub))? {
            Err(AttachError::Net(error)) if exists(&error) && attempt < ATTEMPTS => attempt += 1,
            made => return made.map(|numbers| (names, numbers)),
        }
    }
}

/// Creates veth pairs between the calling thread's namespace and the hub. Returns the device
/// indices in this namespace.
///
/// The indices are large random numbers, because programs redirect by index: after the interface
/// moves to another namespace, or while it stays closed, an index must not match another device.
/// The kernel assigns small indices, from 1 upward.
fn make_pairs<const N: usize>(
    names: &[String; N],
    hub: &NetNamespace,
) -> Result<[u32; N], AttachError> {
    let first = 0x4000_0000 | (random() >> 34) as u32 & !1;
    let mut numbers = [0; N];
    for at in 0..N {
        numbers[at] = make_pair(&names[at], first + at as u32, hub).inspect_err(|_| {
            // Clean up before the next attempt.
            for made in &names[..at] {
                let _ = link::link_delete(made);
            }
        })?;
    }
    Ok(numbers)
}

fn make_pair(name: &str, index: u32, hub: &NetNamespace) -> Result<u32, AttachError> {
    let end = |namespace, index| End {
        name,
        namespace,
        mtu: Some(MTU),
        index,
        ..End::default()
    };
    veth::create(&VethConfig {
        a: end(None, Some(index)),
        b: end(Some(hub), None),
    })?;
    // A link-local address would be visible in the container and cause multicast reports. Best
    // effort: a kernel without IPv6 supports neither request.
    let _ = link::link_without_own_address(name);
    let _ = sysctl::set(&format!("ipv6/conf/{name}/disable_ipv6"), "1");
    sctp_segmentation_off(name);
    hub.run(|| {
        let _ = link::link_without_own_address(name);
        link::link_up(name)
    })??;
    link::link_up(name)?;
    link::wait_running(name, CARRIER_TIMEOUT)?;
    Ok(link::link_index(name)?)
}

/// Opens a device's port. Its losses include frames that the kernel drops on delivery to the
/// interface.
pub(super) fn open(
    device: &str,
    options: &OpenOptions,
    given: &Arc<GivenFrames>,
) -> Result<Port, PortError> {
    let mut port = registry::open(&format!("packet:{device}"), options)?;
    if let AnyTx::Packet(tx) = &mut port.tx {
        let given = Arc::clone(given);
        tx.add_losses(Box::new(move || given.losses()));
    }
    Ok(port)
}

pub(super) fn random() -> u64 {
    // The hasher's keys are random per thread and differ per instance.
    RandomState::new().build_hasher().finish()
}
