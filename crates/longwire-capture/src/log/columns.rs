//! The columns of a log, and where a file has them.
//!
//! Times are stored so that they stay whole numbers in any program: arrivals
//! count from an epoch, and what follows an arrival counts from it, with −1
//! where it never happened. Logs of before, with absolute times that may be
//! absent, are read as well.

use super::row::Row;

/// The columns, in the order in which they are written. Readers take them in
/// any order and pass over columns that they do not know.
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

/// The place of the epoch among [`COLUMNS`]: the last.
pub(super) const EPOCH: usize = COLUMNS.len() - 1;

/// What columns were called that had absolute times.
const ABSOLUTE: [(&str, &str); 2] = [("sojourn_ns", "departure_ns"), ("delay_ns", "release_ns")];

/// What never happened.
const NEVER: i64 = -1;

/// Where a file has its columns.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The place of each of [`COLUMNS`]; without the epoch where times are
    /// absolute.
    pub places: Vec<usize>,
    relative: bool,
}

impl Layout {
    /// Finds the columns by their names.
    ///
    /// # Errors
    /// Those that the file lacks.
    pub fn find(place: impl Fn(&str) -> Option<usize>) -> Result<Layout, Vec<&'static str>> {
        let relative = !ABSOLUTE.iter().all(|(_, old)| place(old).is_some());
        let names = match relative {
            true => &COLUMNS[..],
            false => &COLUMNS[..EPOCH],
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
        match missing.is_empty() {
            true => Ok(Layout { places, relative }),
            false => Err(missing),
        }
    }

    /// What the file calls the column at this place of [`COLUMNS`].
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

    /// If the file has an epoch.
    pub fn has_epoch(&self) -> bool {
        self.relative
    }

    /// Gives a row as it was read absolute times.
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

/// The times of a row as they are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub arrival: i64,
    pub sojourn: i64,
    pub delay: i64,
}

impl Stored {
    pub fn of(row: &Row, epoch: i64) -> Stored {
        let since = |time: Option<i64>| match time {
            Some(time) => time.saturating_sub(row.arrival_ns),
            None => NEVER,
        };
        Stored {
            arrival: row.arrival_ns.wrapping_sub(epoch),
            sojourn: since(row.departure_ns),
            delay: since(row.release_ns),
        }
    }
}
