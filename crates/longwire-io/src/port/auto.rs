//! `auto:IF`: selects the best port for an interface and explains the choice.

use super::PortError;
use super::options::OpenOptions;
use super::registry::{self, Port};
use crate::net::link::link_kind;

/// Opens the interface `name` with AF_XDP if it is hardware, and with AF_PACKET if it is
/// virtual or AF_XDP fails.
///
/// Virtual interfaces deliver super-packets of 64 KiB, which only AF_PACKET passes on
/// whole; hardware segments them, and AF_XDP is then cheaper per frame.
pub(super) fn open(name: &str, options: &OpenOptions) -> Result<Port, PortError> {
    let (kind, why) = match link_kind(name) {
        _ if options.gap_frames.is_some() => (
            "packet",
            format!("{name}: using AF_PACKET, the only port with gap frames"),
        ),
        Ok(kind) if !kind.is_empty() && options.offloads => (
            "packet",
            format!(
                "{name}: using AF_PACKET, which keeps super-packets of virtual devices \
                     ({kind}) whole"
            ),
        ),
        // The port reports a missing interface, with the existing ones.
        _ => ("xdp", format!("{name}: using AF_XDP")),
    };
    let opened = registry::open_kind(&format!("{kind}:{name}"), options);
    let (result, why) = match opened {
        Err(error) if kind == "xdp" && may_work_otherwise(&error) => (
            registry::open_kind(&format!("packet:{name}"), options),
            format!("{name}: using AF_PACKET, because AF_XDP failed: {error}"),
        ),
        other => (other, why),
    };
    result.map(|mut port| {
        port.notes.insert(0, why);
        port
    })
}

fn may_work_otherwise(error: &PortError) -> bool {
    match error {
        PortError::NoInterface { .. } | PortError::Down { .. } => false,
        PortError::InUse { only_by_xdp, .. } => *only_by_xdp,
        _ => true,
    }
}
