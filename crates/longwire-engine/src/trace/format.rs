//! Trace formats and their detection.

use super::netem_trace::{self, begins_list};
use super::pensieve::PensieveReader;
use super::quantity::Quantity;
use super::schedule::{OpportunitySchedule, ScheduleReader};
use super::series::Series;
use super::table::{Mapping, TableReader};
use super::trains::{Trains, TrainsReader};
use crate::prelude::*;
use longwire_units::lines::LineSplitter;

/// Trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// CSV and similar tables: [`super::table`].
    Table,
    /// Packet delivery opportunities: [`super::schedule`].
    Mahimahi,
    /// Times and rates: [`super::pensieve`].
    Pensieve,
    /// Packet trains: [`super::trains`].
    CellReplay,
    /// A model in JSON or TOML: [`super::netem_trace`].
    NetemTrace,
    /// A JSON list: rows of named values, or netem-trace's row format.
    Json,
}

impl Format {
    /// All formats with their names.
    pub const ALL: [(&'static str, Format); 6] = [
        ("table", Format::Table),
        ("mahimahi", Format::Mahimahi),
        ("pensieve", Format::Pensieve),
        ("cellreplay", Format::CellReplay),
        ("netem-trace", Format::NetemTrace),
        ("json", Format::Json),
    ];

    /// Returns the format's name.
    pub fn name(self) -> &'static str {
        let found = Format::ALL.iter().find(|(_, format)| *format == self);
        found.map_or("", |(name, _)| name)
    }

    /// Detects the format from the first significant line.
    fn of(line: &str) -> Format {
        let is_number = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                && word.parse::<f64>().is_ok()
        };
        let is_whole = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let words: Vec<&str> = line.split_whitespace().collect();
        if begins_list(line) {
            return Format::Json;
        }
        let begins_document = line.starts_with(['{', '[']);
        if begins_document || (line.contains('=') && !line.contains(',')) {
            return Format::NetemTrace;
        }
        match words.as_slice() {
            [word] if is_whole(word) => Format::Mahimahi,
            [time, rate] if is_number(time) && is_number(rate) => Format::Pensieve,
            [_, _, _, ..] if words.iter().all(|word| is_whole(word)) => Format::CellReplay,
            _ => Format::Table,
        }
    }
}

/// Contents of a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A time series; the flag is set if the trace repeats forever.
    Series(Series, bool),
    /// Patterns of probabilities over time, with the same flag.
    Patterns(Patterns, bool),
    /// Packet delivery opportunities.
    Schedule(OpportunitySchedule),
    /// Packet trains.
    Trains(Trains),
}

/// Probabilities that depend on preceding frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patterns {
    /// Index into `sets` over time.
    pub series: Series,
    /// Selection probability after a run of 0, 1, 2 … selected frames, in steps of
    /// [`Quantity::LOSS_STEPS`]; the last entry applies to all longer runs. Never empty.
    pub sets: Vec<Vec<u64>>,
}

/// Maximum text buffered to detect the format, in bytes: the maximum line length.
const HEAD_MAX: usize = 64 * 1024;

/// Maximum length of a document, which is buffered as a whole.
const DOCUMENT_MAX: usize = 16 << 20;

/// Reads a trace in pieces; buffers until the format is known.
#[derive(Debug)]
pub struct TraceReader {
    format: Option<Format>,
    mapping: Mapping,
    /// Whether values will be interpolated linearly.
    for_ramps: bool,
    /// Text buffered until the format is known.
    head: Vec<u8>,
    reader: Option<FormatReader>,
}

#[derive(Debug)]
enum FormatReader {
    Lines(Box<LineSplitter>, Lines),
    Document(Vec<u8>),
}

#[derive(Debug)]
enum Lines {
    Table(Box<TableReader>),
    Mahimahi(ScheduleReader),
    Pensieve(PensieveReader),
    CellReplay(TrainsReader),
}

impl Lines {
    fn line(&mut self, text: &str) -> Result<(), String> {
        match self {
            Lines::Table(reader) => reader.line(text),
            Lines::Mahimahi(reader) => reader.line(text),
            Lines::Pensieve(reader) => reader.line(text),
            Lines::CellReplay(reader) => reader.line(text),
        }
    }
}

impl TraceReader {
    /// Creates a reader for the quantity in `mapping`. Without a format, detects it from the first
    /// line. `for_ramps` is set for linear interpolation, which only tables support.
    pub fn new(format: Option<Format>, mapping: Mapping, for_ramps: bool) -> TraceReader {
        TraceReader {
            format,
            mapping,
            for_ramps,
            head: Vec::new(),
            reader: None,
        }
    }

    /// Reads the next piece.
    ///
    /// # Errors
    /// A message with the line number.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), String> {
        if let Some(reader) = &mut self.reader {
            return take(reader, piece);
        }
        self.head.extend_from_slice(piece);
        let ends_line = piece.contains(&b'\n');
        let known = self.format.or_else(|| {
            let line = ends_line.then(|| first_line(&self.head)).flatten()?;
            Some(self.guess(line))
        });
        match known {
            Some(format) => self.choose(format),
            // Only documents may consist of one long line.
            None if self.head.len() > HEAD_MAX => self.choose(match self.head.trim_ascii_start() {
                [b'{', ..] => Format::NetemTrace,
                [b'[', ..] => Format::Json,
                _ => Format::Table,
            }),
            None => Ok(()),
        }
    }

    /// Returns the trace's contents.
    ///
    /// # Errors
    /// If the contents are invalid.
    pub fn finish(mut self) -> Result<Contents, String> {
        if self.reader.is_none() {
            // The last line may be unterminated.
            self.head.push(b'\n');
            let guess = || first_line(&self.head).map_or(Format::Table, |line| self.guess(line));
            let format = self.format.unwrap_or_else(guess);
            self.choose(format)?;
        }
        match self.reader {
            Some(FormatReader::Lines(mut splitter, mut lines)) => {
                splitter.finish(&mut |_, text| lines.line(text))?;
                Ok(match lines {
                    Lines::Table(reader) => Contents::Series(reader.finish()?, false),
                    Lines::Mahimahi(reader) => Contents::Schedule(reader.finish()?),
                    Lines::Pensieve(reader) => Contents::Series(reader.finish()?, false),
                    Lines::CellReplay(reader) => Contents::Trains(reader.finish()?),
                })
            }
            Some(FormatReader::Document(bytes)) => {
                let text = core::str::from_utf8(&bytes).map_err(|_| "not UTF-8 text")?;
                let document = netem_trace::document(text)?;
                if let Some(rows) = netem_trace::objects(&document) {
                    let mut table = TableReader::new(self.mapping, false);
                    table.objects(rows)?;
                    return Ok(Contents::Series(table.finish()?, false));
                }
                check(Format::NetemTrace, &self.mapping)?;
                netem_trace::read(&document, self.mapping.quantity)
            }
            None => Err("no data: only comments or empty lines".to_owned()),
        }
    }

    /// Detects the format from the first significant line. If columns, units or a filter are
    /// requested, it is a table or a JSON list: other formats have no columns.
    fn guess(&self, line: &str) -> Format {
        match Format::of(line) {
            Format::Json => Format::Json,
            _ if self.mapping != Mapping::usual(self.mapping.quantity) => Format::Table,
            format => format,
        }
    }

    /// Creates the reader for a format and passes it the buffered text.
    fn choose(&mut self, mut format: Format) -> Result<(), String> {
        if self.for_ramps {
            check_ramps(format)?;
            format = Format::Table;
        }
        check(format, &self.mapping)?;
        let lines = |lines| FormatReader::Lines(Box::default(), lines);
        let mut reader = match format {
            Format::Table => {
                let table = TableReader::new(self.mapping.clone(), self.for_ramps);
                lines(Lines::Table(Box::new(table)))
            }
            Format::Mahimahi => lines(Lines::Mahimahi(ScheduleReader::default())),
            Format::Pensieve => lines(Lines::Pensieve(PensieveReader::default())),
            Format::CellReplay => lines(Lines::CellReplay(TrainsReader::default())),
            Format::NetemTrace | Format::Json => FormatReader::Document(Vec::new()),
        };
        let head = core::mem::take(&mut self.head);
        let taken = take(&mut reader, &head);
        self.reader = Some(reader);
        taken
    }
}

/// Checks that the format supports the quantity and, if any were requested, columns.
fn check(format: Format, mapping: &Mapping) -> Result<(), String> {
    let (name, quantity) = (format.name(), mapping.quantity);
    let holds = match format {
        Format::Table => true,
        Format::Mahimahi | Format::Pensieve => quantity == Quantity::Rate,
        Format::CellReplay => quantity == Quantity::Delay,
        Format::NetemTrace | Format::Json => quantity != Quantity::Time,
    };
    if !holds {
        let quantity = quantity.name();
        return Err(match (format, quantity) {
            (Format::CellReplay, "rate") => {
                "contains packet trains; use the rate model cellreplay".to_owned()
            }
            _ => format!("a {name} trace has no {quantity}"),
        });
    }
    let has_columns = matches!(format, Format::Table | Format::Json);
    if !has_columns && *mapping != Mapping::usual(quantity) {
        return Err(format!(
            "a {name} trace has no columns; remove columns, units and where, or set format=table"
        ));
    }
    Ok(())
}

/// Rejects formats whose values cannot be interpolated linearly. A numeric table may look like a
/// Pensieve trace.
fn check_ramps(format: Format) -> Result<(), String> {
    match format {
        Format::Table | Format::Pensieve => Ok(()),
        Format::CellReplay => Err(
            "a cellreplay trace already interpolates its base delay, in whole milliseconds; remove \
             change=linear"
                .to_owned(),
        ),
        Format::Mahimahi | Format::NetemTrace | Format::Json => Err(format!(
            "change=linear is for tables, not for a {} trace",
            format.name()
        )),
    }
}

fn take(reader: &mut FormatReader, piece: &[u8]) -> Result<(), String> {
    match reader {
        FormatReader::Lines(splitter, lines) => {
            splitter.feed(piece, &mut |_, text| lines.line(text))
        }
        FormatReader::Document(bytes) if bytes.len() + piece.len() > DOCUMENT_MAX => Err(format!(
            "longer than {} MB; convert the trace to a table",
            DOCUMENT_MAX >> 20
        )),
        FormatReader::Document(bytes) => {
            bytes.extend_from_slice(piece);
            Ok(())
        }
    }
}

/// Returns the first complete line that is neither empty nor a comment.
fn first_line(head: &[u8]) -> Option<&str> {
    let end = head.iter().rposition(|byte| *byte == b'\n')?;
    let mut lines = head[..end].split(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let text = core::str::from_utf8(line).ok()?;
        let text = text.trim_start_matches('\u{feff}').trim();
        (!text.is_empty() && !text.starts_with('#')).then_some(text)
    })
}
