//! Selects the carrier control of a port.

use std::io;

use super::PortError;
use super::any::{AnyRx, AnyTx};
use super::carrier::{Carrier, SwitchCarrier};
use super::options::CarrierControl;
use crate::net::netlink::Netlink;
use crate::net::{NetError, link};

/// Lets a port control the carrier of the interface at its other end.
///
/// # Errors
/// The interface does not exist, or is not Longwire's.
pub(super) fn control(
    port: &str,
    halves: (&mut AnyRx, &mut AnyTx),
    control: CarrierControl,
) -> Result<(), PortError> {
    let refused = |reason: &str| PortError::Unsupported {
        port: port.to_owned(),
        reason: reason.to_owned(),
    };
    if control == CarrierControl::Off {
        return Ok(());
    }
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOTTY) => {
            refused("controlling the carrier of a TAP device needs Linux 5.0")
        }
        _ => PortError::of(port.to_owned(), "controlling the carrier", error),
    };
    let start = |switch| Carrier::start(switch).map_err(failed);
    let own_pair = |interface: &str| {
        if control == CarrierControl::OwnPair {
            start(switch_of_pair(interface).map_err(failed)?)
        } else {
            Err(refused(
                "carrier: cannot control the carrier of an existing interface; use tap:NAME, or \
                 `longwire exec`",
            ))
        }
    };
    match halves {
        (AnyRx::Tap(_), AnyTx::Tap(tx)) => {
            let switch = tx.carrier_switch().map_err(failed)?;
            tx.carrier = Some(start(switch)?);
        }
        (AnyRx::Packet(rx), AnyTx::Packet(tx)) => {
            let carrier = own_pair(tx.interface())?;
            rx.carrier = Some(carrier.state());
            tx.carrier = Some(carrier);
        }
        (AnyRx::Xdp(_), AnyTx::Xdp(tx)) => tx.carrier = Some(own_pair(tx.interface())?),
        _ => return Err(refused("carrier: no interface at the other end")),
    }
    Ok(())
}

/// Returns the switch of a veth pair whose end `interface` is in the calling thread's
/// namespace.
fn switch_of_pair(interface: &str) -> io::Result<SwitchCarrier> {
    let mut netlink = Netlink::route().map_err(|error| error.source)?;
    let interface = interface.to_owned();
    Ok(Box::new(move |up| {
        let done = link::set_up_by(&mut netlink, &interface, up);
        done.map_err(NetError::into_io)
    }))
}
