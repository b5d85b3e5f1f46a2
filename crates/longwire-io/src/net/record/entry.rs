//! The lines of a record.

use std::fmt;
use std::str::FromStr;

use crate::net::netns::NamespaceId;

/// An action that restores a device's setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undo {
    /// Enable IPv6.
    Ipv6,
    /// Enable a feature, by the kernel's name.
    Feature(String),
    /// Set the length of the transmit queue in packets.
    QueueLen(i32),
    /// Take the device down.
    Down,
}

/// A line of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) namespace: NamespaceId,
    /// Index of the port's interface.
    pub(super) port: u32,
    /// The changed device: the interface, or its peer.
    pub(super) device: String,
    /// `None` only marks the existence of a port.
    pub(super) undo: Option<Undo>,
}

impl Entry {
    /// Whether both are about ports on one interface.
    pub(super) fn is_of_port_of(&self, other: &Entry) -> bool {
        self.namespace == other.namespace && self.port == other.port
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NamespaceId { cookie, inode } = self.namespace;
        write!(f, "{cookie} {inode} {} {} ", self.port, self.device)?;
        match &self.undo {
            None => write!(f, "used"),
            Some(Undo::Ipv6) => write!(f, "ipv6"),
            Some(Undo::Feature(name)) => write!(f, "feature {name}"),
            Some(Undo::QueueLen(places)) => write!(f, "queue-len {places}"),
            Some(Undo::Down) => write!(f, "down"),
        }
    }
}

impl FromStr for Entry {
    type Err = ();

    fn from_str(line: &str) -> Result<Entry, ()> {
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or(());
        let number = |word: &str| word.parse::<u64>().map_err(drop);
        Ok(Entry {
            namespace: NamespaceId {
                cookie: number(word()?)?,
                inode: number(word()?)?,
            },
            port: word()?.parse().map_err(drop)?,
            device: word()?.to_owned(),
            undo: match word()? {
                "used" => None,
                "ipv6" => Some(Undo::Ipv6),
                "feature" => Some(Undo::Feature(word()?.to_owned())),
                "queue-len" => Some(Undo::QueueLen(word()?.parse().map_err(drop)?)),
                "down" => Some(Undo::Down),
                _ => return Err(()),
            },
        })
    }
}

/// Parses the entries of a record; skips invalid lines.
pub(super) fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Formats entries as a record.
pub(super) fn written(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("{entry}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back() {
        let entry = |undo| Entry {
            namespace: NamespaceId {
                cookie: 7,
                inode: 4_026_531_840,
            },
            port: 3,
            device: "eth0".to_owned(),
            undo,
        };
        for undo in [
            None,
            Some(Undo::Ipv6),
            Some(Undo::Feature("rx-lro".to_owned())),
            Some(Undo::QueueLen(500)),
            Some(Undo::Down),
        ] {
            let entry = entry(undo);
            assert_eq!(parse(&written(std::slice::from_ref(&entry))), [entry]);
        }
        assert_eq!(parse("1 2 3 eth0 ipv7\nnonsense\n1 2 3"), []);
    }
}
