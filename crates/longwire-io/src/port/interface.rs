//! Looks up the interface of a port.

use super::PortError;
use crate::net::NetError;
use crate::net::interface::{Interface, names_present};

/// Returns the interface of that name, if it exists, is up, and carries Ethernet.
pub(crate) fn find_up(port: &str, name: &str) -> Result<Interface, PortError> {
    let interface = match Interface::find(name) {
        Ok(interface) => interface,
        Err(NetError::NoDevice { .. }) => {
            return Err(PortError::NoInterface {
                name: name.to_owned(),
                present: names_present(),
            });
        }
        Err(error) => {
            return Err(PortError::Failed {
                port: port.to_owned(),
                action: "looking up the interface",
                source: std::io::Error::other(error),
            });
        }
    };
    if !interface.is_ethernet() {
        return Err(PortError::Unsupported {
            port: port.to_owned(),
            reason: "not an Ethernet interface".to_owned(),
        });
    }
    if !interface.up {
        return Err(PortError::Down {
            name: name.to_owned(),
        });
    }
    Ok(interface)
}
