//! Whether the peer's program is ready: whether anything in its namespace
//! listens.

use std::fs;

use longwire_io::net::NetNamespace;

/// State 0A of `/proc/net/tcp`.
const TCP_LISTEN: &str = "0A";
/// State 07 of `/proc/net/udp`: bound, and connected to nobody.
const UDP_BOUND: &str = "07";

/// Whether a socket in the namespace waits for others: listens on TCP, or is
/// bound on UDP.
pub fn listens(namespace: &NetNamespace) -> bool {
    const TABLES: [(&str, &str); 4] = [
        ("tcp", TCP_LISTEN),
        ("tcp6", TCP_LISTEN),
        ("udp", UDP_BOUND),
        ("udp6", UDP_BOUND),
    ];
    namespace
        .run(|| {
            TABLES.iter().any(|(table, state)| {
                // A kernel without IPv6 has no such table.
                let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
                has_socket_in(&text.unwrap_or_default(), state)
            })
        })
        .unwrap_or(false)
}

/// Whether a table of sockets has one in that state. The fourth column is the
/// state; the first line is the heading.
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
