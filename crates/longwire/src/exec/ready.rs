//! Whether the peer's program is ready: whether anything in its namespace
//! listens.

use std::fs::File;
use std::io::{Read, Seek};

use longwire_io::net::{NetError, NetNamespace};

/// State 0A of `/proc/net/tcp`.
const TCP_LISTEN: &str = "0A";
/// State 07 of `/proc/net/udp`: bound, and not connected.
const UDP_BOUND: &str = "07";

/// The kernel's tables of the sockets in one namespace.
#[derive(Debug)]
pub struct SocketTables {
    tables: Vec<(File, &'static str)>,
}

impl SocketTables {
    /// Opens the tables of a namespace. They stay those of the namespace,
    /// whichever thread reads them.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    pub fn open(namespace: &NetNamespace) -> Result<SocketTables, NetError> {
        const TABLES: [(&str, &str); 4] = [
            ("tcp", TCP_LISTEN),
            ("tcp6", TCP_LISTEN),
            ("udp", UDP_BOUND),
            ("udp6", UDP_BOUND),
        ];
        // A kernel without IPv6 lacks two of them.
        let open = |(table, state)| {
            let file = File::open(format!("/proc/thread-self/net/{table}"));
            Some((file.ok()?, state))
        };
        let tables = namespace.run(|| TABLES.into_iter().filter_map(open).collect())?;
        Ok(SocketTables { tables })
    }

    /// Returns whether a socket waits for others: listens on TCP, or is bound
    /// on UDP.
    pub fn any_listens(&mut self) -> bool {
        self.tables.iter_mut().any(|(file, state)| {
            let mut text = String::new();
            let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
            read.is_ok() && has_socket_in(&text, state)
        })
    }
}

/// Returns whether a table of sockets has one in that state. The fourth
/// column is the state; the first line is the heading.
fn has_socket_in(table: &str, state: &str) -> bool {
    table
        .lines()
        .skip(1)
        .any(|line| line.split_whitespace().nth(3) == Some(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wanted_state_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n\
                     1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000\n";
        assert!(has_socket_in(table, "0A"));
        assert!(!has_socket_in(table, "07"));
        assert!(!has_socket_in("", "0A"));
        assert!(!has_socket_in("  sl  local 0A 0A", "0A"));
    }
}
