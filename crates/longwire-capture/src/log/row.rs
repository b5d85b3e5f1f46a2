//! Rows and columns of a log, and the columns' positions in a file.
//!
//! Times are encoded so that any program can read them as integers: arrivals are relative to an
//! epoch, departures and releases are relative to the arrival, and −1 means an absent time. Older
//! logs, with absolute times that may be empty, remain readable.

use super::error::LogError;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// One verdict on one wire frame.
///
/// A duplicated frame has one additional row per copy, with the same number. Times are in
/// nanoseconds on the scale of the frame timestamps: Unix time for ordinary captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number in order of arrival at this link, from 0.
    pub frame: u64,
    /// The link: `up`, `down`, `ab` or `ba`, or its name in a topology.
    pub link: Name,
    /// Arrival at the link.
    pub arrival_ns: i64,
    /// Wire length in bytes, without framing.
    pub length: u32,
    /// The link's decision about the frame.
    pub verdict: Fate,
    /// Departure of the frame's last bit from the emulated queue, if it departed.
    pub departure_ns: Option<i64>,
    /// Release to the output port, if delivered.
    pub release_ns: Option<i64>,
    /// Drop reason, if dropped.
    pub reason: Option<Name>,
    /// Whether the link marked the frame as Congestion Experienced (RFC 3168).
    pub ecn_marked: bool,
    /// Whether the link inverted bits in the frame.
    pub corrupted: bool,
    /// 0 for the frame itself, 1 onwards for duplicates.
    pub copy: u16,
    /// Packets in the queue just after the frame was offered.
    pub queue_packets: u32,
    /// Bytes in the queue just after the frame was offered.
    pub queue_bytes: u64,
}

impl Row {
    /// Checks that the row is consistent.
    ///
    /// # Errors
    /// A description of the contradiction.
    pub(super) fn check(&self) -> Result<(), String> {
        let arrival = self.arrival_ns;
        if let Some(departure) = self.departure_ns.filter(|at| *at < arrival) {
            return Err(format!(
                "departure_ns {departure} is before arrival_ns {arrival}"
            ));
        }
        match self.verdict {
            Fate::Deliver => match (self.departure_ns, self.release_ns) {
                (Some(_), Some(release)) if release < arrival => Err(format!(
                    "release_ns {release} is before arrival_ns {arrival}"
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

/// Verdict on a frame, without its times.
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
    /// All fates.
    pub const ALL: [Fate; 3] = [Fate::Deliver, Fate::Drop, Fate::Held];

    /// Returns the text for the column `verdict`.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Deliver => "deliver",
            Fate::Drop => "drop",
            Fate::Held => "held",
        }
    }

    /// Parses the text returned by [`Fate::name`].
    pub(super) fn parse(text: &str) -> Result<Fate, String> {
        let named = Fate::ALL.into_iter().find(|fate| fate.name() == text);
        named.ok_or_else(|| format!("verdict '{text}' is not one of deliver, drop, held"))
    }
}

/// A short text shared by many rows: a link's name or a drop reason.
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

/// Names read so far, for sharing between rows.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: Vec<Name>,
}

/// Maximum size of [`Names`]. A log has few links and reasons; with more names, the search per row
/// would cost more than sharing saves.
const NAMES_MAX: usize = 64;

impl Names {
    /// Returns the shared name for this text.
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

/// The columns in output order. Readers accept any order and ignore unknown columns.
pub const COLUMNS: [&str; 14] = [
    "frame",
    "link",
    "arrival_ns",
    "length",
    "verdict",
    "sojourn_ns",
    "delay_ns",
    "reason",
    "ecn_marked",
    "corrupted",
    "copy",
    "queue_packets",
    "queue_bytes",
    "epoch_ns",
];

/// Index of the epoch in [`COLUMNS`], the last column.
pub(super) const EPOCH: usize = COLUMNS.len() - 1;

/// Columns with other names in logs with absolute times: new name, old name.
const ABSOLUTE: [(&str, &str); 2] = [("sojourn_ns", "departure_ns"), ("delay_ns", "release_ns")];

/// Stored value of an absent time.
const NEVER: i64 = -1;

/// Positions of the columns in a file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Position of each of [`COLUMNS`]; without the epoch if times are absolute.
    pub places: Vec<usize>,
    relative: bool,
}

impl Layout {
    /// Finds the columns by name.
    ///
    /// # Errors
    /// The missing columns.
    pub fn find(path: &Path, place: impl Fn(&str) -> Option<usize>) -> Result<Layout, LogError> {
        let relative = !ABSOLUTE.iter().all(|(_, old)| place(old).is_some());
        let count = if relative { COLUMNS.len() } else { EPOCH };
        let (mut places, mut missing) = (Vec::with_capacity(count), Vec::new());
        for name in &COLUMNS[..count] {
            match place(name_in_file(name, relative)) {
                Some(place) => places.push(place),
                None => missing.push(*name),
            }
        }
        if missing.is_empty() {
            return Ok(Layout { places, relative });
        }
        let path = path.to_owned();
        Err(LogError::Columns { path, missing })
    }

    /// Returns the file's name for the column with this index in [`COLUMNS`].
    pub fn name(&self, index: usize) -> &'static str {
        name_in_file(COLUMNS[index], self.relative)
    }

    pub fn has_epoch(&self) -> bool {
        self.relative
    }

    /// Whether a stored departure or release is absent. Relative times are absent if negative.
    pub fn is_absent(&self, time: Option<i64>) -> bool {
        time.is_none_or(|time| self.relative && time < 0)
    }

    /// Converts a row's stored times to absolute times.
    pub fn resolve(&self, row: &mut Row, epoch: i64) {
        if !self.relative {
            return;
        }
        row.arrival_ns = row.arrival_ns.wrapping_add(epoch);
        let arrival = row.arrival_ns;
        let absolute =
            |since: Option<i64>| Some(arrival.saturating_add(since.filter(|at| *at >= 0)?));
        row.departure_ns = absolute(row.departure_ns);
        row.release_ns = absolute(row.release_ns);
    }
}

/// Returns a column's name in a file with relative or absolute times.
fn name_in_file(column: &'static str, relative: bool) -> &'static str {
    let old = ABSOLUTE.iter().find(|(new, _)| *new == column);
    match (relative, old) {
        (false, Some((_, old))) => old,
        _ => column,
    }
}

/// A row's times as stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredTimes {
    pub arrival: i64,
    pub sojourn: i64,
    pub delay: i64,
}

impl StoredTimes {
    pub fn of(row: &Row, epoch: i64) -> StoredTimes {
        let since =
            |time: Option<i64>| time.map_or(NEVER, |time| time.saturating_sub(row.arrival_ns));
        StoredTimes {
            arrival: row.arrival_ns.wrapping_sub(epoch),
            sojourn: since(row.departure_ns),
            delay: since(row.release_ns),
        }
    }
}
