//! Detects whether the peer's program is ready, that is, has a listening socket.

use std::fs::File;
use std::io::{Read, Seek};

use longwire_io::net::{NetError, NetNamespace};

/// State of a listening socket in `/proc/net/tcp`.
const TCP_LISTEN: &str = "0A";
/// State in `/proc/net/udp` of a socket that is bound but not connected.
const UDP_BOUND: &str = "07";

/// Maximum consecutive checks that read only the counters.
const SKIPPED_MAX: u32 = 9;

/// The kernel's socket tables of one namespace.
#[derive(Debug)]
pub struct SocketTables {
    tables: Vec<(File, &'static str)>,
    /// The kernel's socket counters, which are much faster to read than the tables.
    counts: Vec<File>,
    /// Counter values for which the tables had no listening socket.
    without: Option<String>,
    /// Counter-only checks since the tables were last read.
    skipped: u32,
}

impl SocketTables {
    /// Opens the tables of a namespace. They belong to that namespace, whichever thread reads them.
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
        // A kernel without IPv6 lacks two of the tables.
        let open = |(table, state)| {
            let file = File::open(format!("/proc/thread-self/net/{table}"));
            Some((file.ok()?, state))
        };
        let count = |file: &str| File::open(format!("/proc/thread-self/net/{file}")).ok();
        let (tables, counts) = namespace.run(|| {
            (
                TABLES.into_iter().filter_map(open).collect(),
                ["sockstat", "sockstat6"]
                    .into_iter()
                    .filter_map(count)
                    .collect(),
            )
        })?;
        Ok(SocketTables {
            tables,
            counts,
            without: None,
            skipped: 0,
        })
    }

    /// Returns whether any socket listens on TCP or is bound on UDP.
    pub fn any_listens(&mut self) -> bool {
        // A socket is counted as soon as it listens or is bound.
        let texts: String = self.counts.iter_mut().filter_map(text).collect();
        let counts = in_use(&texts);
        // Between two checks, one socket may have closed and another one opened, so equal counters
        // do not prove unchanged tables.
        if self.without.as_ref() == Some(&counts) && self.skipped < SKIPPED_MAX {
            self.skipped += 1;
            return false;
        }
        self.skipped = 0;
        let mut tables = self.tables.iter_mut();
        let any = tables.any(|(file, state)| text(file).is_some_and(|text| has(&text, state)));
        self.without = (!any && !counts.is_empty()).then_some(counts);
        any
    }
}

/// Returns the counters of sockets in use in a namespace, from lines such as `TCP: inuse 2 orphan 0
/// tw 0 alloc 9 mem 1`; the other numbers cover all namespaces.
fn in_use(sockstat: &str) -> String {
    let lines = sockstat.lines().filter_map(|line| {
        let (protocol, rest) = line.split_once(": inuse ")?;
        Some(format!("{protocol} {}\n", rest.split(' ').next()?))
    });
    lines.collect()
}

/// Reads a kernel file from its start.
fn text(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns whether a socket table has an entry in this state, which is in the fourth column. The
/// first line is the header.
fn has(table: &str, state: &str) -> bool {
    table
        .lines()
        .skip(1)
        .any(|line| line.split_whitespace().nth(3) == Some(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_other_namespaces_are_left_out() {
        let text = "sockets: used 9\nTCP: inuse 2 orphan 0 tw 0 alloc 9 mem 1\nUDP6: inuse 1\n";
        assert_eq!(in_use(text), "TCP 2\nUDP6 1\n");
    }

    #[test]
    fn a_socket_is_found_although_the_counts_stay_equal() {
        let dir = std::env::temp_dir().join(format!("longwire-ready-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let file = |name: &str, text: &str| {
            std::fs::write(dir.join(name), text).expect("writable");
            File::open(dir.join(name)).expect("it is there")
        };
        // A connected socket is replaced by one that is only bound.
        let row = |state: &str| format!("heading\n0: 0100007F:0035 00000000:0000 {state}\n");
        let mut sockets = SocketTables {
            counts: vec![file("sockstat", "UDP: inuse 1 mem 0\n")],
            tables: vec![(file("udp", &row("01")), UDP_BOUND)],
            without: None,
            skipped: 0,
        };
        assert!(!sockets.any_listens());
        file("udp", &row(UDP_BOUND));
        assert!((0..=SKIPPED_MAX).any(|_| sockets.any_listens()));
        let _ = std::fs::remove_dir_all(dir);
    }

    #[test]
    fn only_the_wanted_state_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n\
                     1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000\n";
        assert!(has(table, "0A"));
        assert!(!has(table, "07"));
        assert!(!has("", "0A"));
        assert!(!has("  sl  local 0A 0A", "0A"));
    }
}
