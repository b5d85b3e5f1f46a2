//! Addresses of control APIs.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Prefix of TCP addresses.
const TCP: &str = "tcp:";

/// Address of a control API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// TCP address.
    Tcp(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    /// Parses a path, or `tcp:ADDRESS:PORT` with a literal address.
    fn from_str(text: &str) -> Result<Address, String> {
        let Some(address) = text.strip_prefix(TCP) else {
            return match text {
                "" => Err("neither a socket path nor tcp:ADDRESS:PORT".to_owned()),
                address if address.parse::<SocketAddr>().is_ok() => Err(format!(
                    "'{address}' looks like an address; write {TCP}{address}, or ./{address} for a \
                     socket path"
                )),
                path => Ok(Address::Unix(PathBuf::from(path))),
            };
        };
        address.parse().map(Address::Tcp).map_err(|_| {
            format!(
                "'{address}' is not an IP address with port; write tcp:127.0.0.1:9470 or \
                 tcp:[::1]:9470"
            )
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp(address) => write!(f, "{TCP}{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in ["tcp:127.0.0.1:9470", "tcp:[::1]:1", "/run/x.sock", "x"] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), text);
        }
        let bare = "127.0.0.1:9470".parse::<Address>();
        let bare = bare.expect_err("it is no path");
        assert!(bare.contains("write tcp:127.0.0.1:9470"), "{bare}");
        let wrong = " [::1]:9470 tcp: tcp:localhost:1 tcp:127.0.0.1 tcp:[::1]";
        for text in wrong.split(' ') {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
