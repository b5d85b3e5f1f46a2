//! The values of a row as they are stored in a file.

use std::str::FromStr;

use super::row::{COLUMNS, EPOCH, Fate, Layout, Names, Row};

/// A stored value. `B` is the type of a text's bytes.
#[derive(Default)]
#[cfg_attr(
    not(feature = "parquet"),
    expect(dead_code, reason = "CSV is text only")
)]
pub(super) enum Value<B> {
    #[default]
    Absent,
    /// An integer of any width, signed or not.
    Number(i128),
    Truth(bool),
    Text(B),
    /// A value of any type, written as text.
    Written(B),
}

/// The values of a row, in the order of [`COLUMNS`].
pub(super) struct Values<'a, B> {
    layout: &'a Layout,
    pub values: [Value<B>; COLUMNS.len()],
}

impl<'a, B: AsRef<[u8]>> Values<'a, B> {
    /// Returns a row whose values are all absent.
    pub fn new(layout: &'a Layout) -> Values<'a, B> {
        let values = Default::default();
        Values { layout, values }
    }

    /// Returns the row's epoch, or 0 if the file has none.
    pub fn epoch(&self) -> Result<i64, String> {
        if self.layout.has_epoch() {
            self.number(EPOCH)
        } else {
            Ok(0)
        }
    }

    /// Returns the row, with absolute times.
    pub fn row(&self, names: &mut Names) -> Result<Row, String> {
        let verdict = self.text(4)?;
        let verdict = verdict.ok_or_else(|| self.unexpected(4, "text"))?;
        let reason = self.text(7)?.filter(|reason| !reason.is_empty());
        let mut row = Row {
            frame: self.number(0)?,
            link: names.get(self.text(1)?.unwrap_or_default()),
            arrival_ns: self.number(2)?,
            length: self.number(3)?,
            verdict: Fate::parse(verdict)?,
            departure_ns: self.time(5)?,
            release_ns: self.time(6)?,
            reason: reason.map(|reason| names.get(reason)),
            ecn_marked: self.truth(8)?,
            corrupted: self.truth(9)?,
            copy: self.number(10)?,
            queue_packets: self.number(11)?,
            queue_bytes: self.number(12)?,
        };
        let times = [(5, row.departure_ns), (6, row.release_ns)];
        let absent = times.iter().find(|(_, time)| self.layout.is_absent(*time));
        if let (Fate::Deliver, Some((index, _))) = (row.verdict, absent) {
            let name = self.layout.name(*index);
            return Err(format!("a delivered frame needs {name} of at least 0"));
        }
        self.layout.resolve(&mut row, self.epoch()?);
        row.check()?;
        Ok(row)
    }

    fn number<T: TryFrom<i128> + FromStr>(&self, index: usize) -> Result<T, String> {
        let (name, bits) = (self.layout.name(index), size_of::<T>() * 8);
        match &self.values[index] {
            Value::Number(number) => T::try_from(*number)
                .map_err(|_| format!("{name} {number} does not fit in {bits} bits")),
            Value::Written(_) => {
                let text = self.text(index)?.unwrap_or_default();
                text.parse().map_err(|_| {
                    format!("{name} '{text}' is not a whole number of at most {bits} bits")
                })
            }
            _ => Err(self.unexpected(index, "a number")),
        }
    }

    fn time(&self, index: usize) -> Result<Option<i64>, String> {
        match &self.values[index] {
            Value::Absent => Ok(None),
            Value::Written(text) if text.as_ref().is_empty() => Ok(None),
            _ => self.number(index).map(Some),
        }
    }

    fn truth(&self, index: usize) -> Result<bool, String> {
        match &self.values[index] {
            Value::Truth(truth) => Ok(*truth),
            // Other programs spell booleans differently.
            Value::Written(_) => match self.text(index)?.unwrap_or_default() {
                "true" | "True" | "TRUE" | "1" => Ok(true),
                "false" | "False" | "FALSE" | "0" => Ok(false),
                other => Err(format!(
                    "{} '{other}' is neither true nor false",
                    COLUMNS[index]
                )),
            },
            _ => Err(self.unexpected(index, "a boolean")),
        }
    }

    fn text(&self, index: usize) -> Result<Option<&str>, String> {
        match &self.values[index] {
            Value::Absent => Ok(None),
            Value::Text(bytes) | Value::Written(bytes) => std::str::from_utf8(bytes.as_ref())
                .map(Some)
                .map_err(|_| format!("{} is not UTF-8", COLUMNS[index])),
            _ => Err(self.unexpected(index, "text")),
        }
    }

    fn unexpected(&self, index: usize, expected: &str) -> String {
        let is = match self.values[index] {
            Value::Absent => "absent",
            Value::Number(_) => "a number",
            Value::Truth(_) => "a boolean",
            Value::Text(_) | Value::Written(_) => "text",
        };
        format!("{} is {is}, not {expected}", COLUMNS[index])
    }
}
