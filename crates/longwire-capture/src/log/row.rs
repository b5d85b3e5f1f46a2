//! A row of the log.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// One verdict about one wire frame.
///
/// A duplicated frame has one additional row per copy, with the same number. Times are in
/// nanoseconds on the scale of the frame's timestamp: since 1970 for ordinary captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number in order of arrival at this link, from 0.
    pub frame: u64,
    /// The link: `up`, `down`, `ab` or `ba`, or its name in a topology.
    pub link: Name,
    /// Arrival at the link.
    pub arrival_ns: i64,
    /// Length on the wire, in bytes, without framing.
    pub length: u32,
    /// The link's decision about the frame.
    pub verdict: Fate,
    /// Departure of its last bit from the emulated queue, if it departed.
    pub departure_ns: Option<i64>,
    /// Release to the output port, if delivered.
    pub release_ns: Option<i64>,
    /// Reason of the drop, if dropped.
    pub reason: Option<Name>,
    /// Whether the link marked it congestion experienced (RFC 3168).
    pub ecn_marked: bool,
    /// Whether the link inverted bits of the frame.
    pub corrupted: bool,
    /// 0 for the frame itself; duplicates count from 1.
    pub copy: u16,
    /// Packets in the queue just after the frame was offered.
    pub queue_packets: u32,
    /// Bytes in the queue just after the frame was offered.
    pub queue_bytes: u64,
}

impl Row {
    /// Checks that the row's fields are consistent.
    ///
    /// # Errors
    /// The contradiction.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(departure) = self.departure_ns.filter(|at| *at < self.arrival_ns) {
            return Err(format!(
                "departure_ns {departure} is before arrival_ns {}",
                self.arrival_ns
            ));
        }
        match self.verdict {
            Fate::Deliver => match (self.departure_ns, self.release_ns) {
                (Some(_), Some(release)) if release < self.arrival_ns => Err(format!(
                    "release_ns {release} is before arrival_ns {}",
                    self.arrival_ns
                )),
                (Some(_), Some(_)) => Ok(()),
                (None, _) => Err("a delivered frame needs departure_ns".to_owned()),
                (_, None) => Err("a delivered frame needs release_ns".to_owned()),
            },
            Fate::Drop if self.reason.as_deref().is_none_or(str::is_empty) => {
                Err("a dropped frame needs a reason".to_owned())
            }
            Fate::Drop | Fate::Held => Ok(()),
        }
    }
}

/// Verdict about a frame, without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Handed to the output port.
    Deliver,
    /// Lost by the emulated link.
    Drop,
    /// Still in the queue when the run ended.
    Held,
}

impl Fate {
    /// Every fate.
    pub const ALL: [Fate; 3] = [Fate::Deliver, Fate::Drop, Fate::Held];

    /// Returns the text of the column `verdict`.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Deliver => "deliver",
            Fate::Drop => "drop",
            Fate::Held => "held",
        }
    }

    /// Parses the text that [`Fate::name`] returns.
    pub(super) fn parse(text: &str) -> Result<Fate, String> {
        let named = Fate::ALL.into_iter().find(|fate| fate.name() == text);
        named.ok_or_else(|| format!("verdict '{text}' is neither deliver, drop nor held"))
    }
}

/// A short text shared by many rows: a link's name or a reason.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Names read so far, so that rows share them.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: Vec<Name>,
}

/// Limit of [`Names`]. A log has few links and reasons; beyond this many names, the search
/// per row costs more than it saves.
const NAMES_MAX: usize = 64;

impl Names {
    /// Returns the name with this text.
    #[inline]
    pub(super) fn get(&mut self, text: &str) -> Name {
        if let Some(name) = self.known.iter().find(|name| &***name == text) {
            return name.clone();
        }
        let name = Name::from(text);
        if self.known.len() < NAMES_MAX {
            self.known.push(name.clone());
        }
        name
    }
}
