//! The columns of a log, and their positions in a file.
//!
//! Times are stored such that they stay integers in any program: arrivals are relative to
//! an epoch, departures and releases to the arrival, and −1 is an absent time. Older logs,
//! with absolute times that may be empty, are still readable.

use super::row::Row;

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

/// Index of the epoch in [`COLUMNS`]: the last.
pub(super) const EPOCH: usize = COLUMNS.len() - 1;

/// Columns that had other names when times were absolute: new name, old name.
const ABSOLUTE: [(&str, &str); 2] = [("sojourn_ns", "departure_ns"), ("delay_ns", "release_ns")];

/// Value of an absent time.
const NEVER: i64 = -1;

/// The positions of the columns in a file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Position of each of [`COLUMNS`]; without the epoch where times are absolute.
    pub places: Vec<usize>,
    relative: bool,
}

impl Layout {
    /// Finds the columns by name.
    ///
    /// # Errors
    /// The missing columns.
    pub fn find(place: impl Fn(&str) -> Option<usize>) -> Result<Layout, Vec<&'static str>> {
        let relative = !ABSOLUTE.iter().all(|(_, old)| place(old).is_some());
        let names = if relative {
            &COLUMNS[..]
        } else {
            &COLUMNS[..EPOCH]
        };
        let mut places = Vec::with_capacity(COLUMNS.len());
        let mut missing = Vec::new();
        for name in names {
            let layout = Layout {
                places: Vec::new(),
                relative,
            };
            match place(layout.name_of(name)) {
                Some(place) => places.push(place),
                None => missing.push(*name),
            }
        }
        if missing.is_empty() {
            Ok(Layout { places, relative })
        } else {
            Err(missing)
        }
    }

    /// Returns the file's name for the column at this index of [`COLUMNS`].
    pub fn name(&self, index: usize) -> &'static str {
        self.name_of(COLUMNS[index])
    }

    fn name_of(&self, column: &'static str) -> &'static str {
        let old = ABSOLUTE.iter().find(|(new, _)| *new == column);
        match (self.relative, old) {
            (false, Some((_, old))) => old,
            _ => column,
        }
    }

    /// Returns whether the file has an epoch.
    pub fn has_epoch(&self) -> bool {
        self.relative
    }

    /// Converts the stored times of a row to absolute times.
    pub fn resolve(&self, row: &mut Row, epoch: i64) {
        if !self.relative {
            return;
        }
        row.arrival_ns = row.arrival_ns.wrapping_add(epoch);
        let arrival = row.arrival_ns;
        let absolute = |since: Option<i64>| {
            let since = since.filter(|since| *since >= 0);
            since.map(|since| arrival.saturating_add(since))
        };
        row.departure_ns = absolute(row.departure_ns);
        row.release_ns = absolute(row.release_ns);
    }
}

/// The times of a row in stored form.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredTimes {
    pub arrival: i64,
    pub sojourn: i64,
    pub delay: i64,
}

impl StoredTimes {
    pub fn of(row: &Row, epoch: i64) -> StoredTimes {
        let since = |time: Option<i64>| match time {
            Some(time) => time.saturating_sub(row.arrival_ns),
            None => NEVER,
        };
        StoredTimes {
            arrival: row.arrival_ns.wrapping_sub(epoch),
            sojourn: since(row.departure_ns),
            delay: since(row.release_ns),
        }
    }
}
