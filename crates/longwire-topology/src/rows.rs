//! Links from a CSV file: one per line, after a header that names the columns.

use std::io::Read;
use std::ops::Range;

use longwire_engine::presets::Duplex;
use longwire_engine::{LinkSpec, PARTS, Part};

use super::builder::{Builder, Matches, NewLink};
use super::links::{shared_options, template_of};
use super::options::overlay;
use super::problem::{Place, suggestion};
use super::tree::{self, Placed};
use super::value::Table;

/// A kind of column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Name,
    Match,
    Template,
    Shared,
    /// An option, and the index of its prefix.
    Option(&'static str, usize),
}

/// Prefixes of options, for both directions or for one. The empty prefix is last, because every
/// name starts with it.
const PREFIXES: [&str; 3] = ["up-", "down-", ""];

/// Columns other than options.
const COLUMNS: [(&str, Column); 4] = [
    ("name", Column::Name),
    ("match", Column::Match),
    ("template", Column::Template),
    ("shared", Column::Shared),
];

/// Fields of `[[link]]` that a CSV file replaces.
const REPLACED: [&str; 6] = ["name", "match", "count", "first", "between", "pairing"];

/// Default settings for all rows in a file.
struct RowDefaults<'a> {
    file: &'a str,
    columns: Vec<Column>,
    /// Options of the `[[link]]` table, which a row's options override.
    own: &'a Duplex,
    template: Option<&'a str>,
    shared: bool,
    position: usize,
}

/// Reads links from the CSV file named by a `[[link]]` table.
pub(super) fn read(item: &Placed<&Table<'_>>, own: &Duplex, builder: &mut Builder) {
    let Some(csv) = tree::text(item.value, "csv") else {
        return;
    };
    if let Some(other) = REPLACED.iter().find(|name| item.value.contains_key(name)) {
        let reason = format!("'{other}' cannot be combined with csv");
        let remedy = "use a column of the file, or remove csv";
        return builder.refuse(item.span.clone(), "link.csv", reason, remedy);
    }
    let (files, folder) = (&builder.store.files, &builder.topology.folder);
    let mut reader = match files.open_rows(folder, csv.value) {
        Ok(file) => csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(file),
        Err(error) => {
            let reason = format!("'{}': {error}", csv.value);
            let remedy = "name a file in the same directory";
            return builder.refuse(csv.span, "link.csv", reason, remedy);
        }
    };
    let Some(columns) = columns(&mut reader, csv.value, csv.span.clone(), builder) else {
        return;
    };
    let defaults = RowDefaults {
        file: csv.value,
        columns,
        own,
        template: tree::text(item.value, "template").map(|name| name.value),
        shared: tree::flag(item.value, "shared") == Some(true),
        position: item.span.start,
    };
    rows(reader, &defaults, builder);
}

fn rows(mut reader: csv::Reader<impl Read>, defaults: &RowDefaults, builder: &mut Builder) {
    let line = |at: Option<&csv::Position>| at.map_or(0, csv::Position::line) as usize;
    let mut record = csv::StringRecord::new();
    loop {
        match reader.read_record(&mut record) {
            Ok(false) => return,
            Ok(true) => row(&record, line(record.position()), defaults, builder),
            Err(error) => {
                let place = place(defaults.file, line(error.position()));
                let remedy = "every line needs as many columns as the header";
                builder.refuse(place, "csv", reason_of(&error), remedy);
                if error.is_io_error() {
                    return;
                }
            }
        }
    }
}

fn reason_of(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("{len} columns, but the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}

fn place(file: &str, line: usize) -> Place {
    Place::Row(file.to_owned(), line)
}

fn columns(
    reader: &mut csv::Reader<impl Read>,
    file: &str,
    at: Range<usize>,
    builder: &mut Builder,
) -> Option<Vec<Column>> {
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) if error.is_io_error() => {
            let reason = format!("'{file}': {error}");
            builder.refuse(at, "link.csv", reason, "name a file in the same directory");
            return None;
        }
        Err(error) => {
            let remedy = "start with a line of column names";
            builder.refuse(place(file, 1), "csv", reason_of(&error), remedy);
            return None;
        }
    };
    let mut columns = Vec::new();
    for name in &header {
        let (reason, remedy) = match column(name) {
            Some(column) if columns.contains(&column) => {
                let reason = format!("column '{name}' occurs twice");
                (reason, "remove one".to_owned())
            }
            Some(column) => {
                columns.push(column);
                continue;
            }
            None => {
                let known = COLUMNS.iter().map(|(name, _)| *name);
                let known = known.chain(PARTS.iter().map(|part| part.name));
                (format!("unknown column '{name}'"), suggestion(name, known))
            }
        };
        builder.refuse(place(file, 1), "csv", reason, remedy);
    }
    if !columns.contains(&Column::Name) {
        let reason = "no column named 'name'";
        builder.refuse(place(file, 1), "csv", reason, "add one");
    }
    (columns.len() == header.len() && columns.contains(&Column::Name)).then_some(columns)
}

fn column(name: &str) -> Option<Column> {
    if let Some((_, column)) = COLUMNS.iter().find(|(known, _)| *known == name) {
        return Some(*column);
    }
    PREFIXES.iter().enumerate().find_map(|(index, prefix)| {
        let bare = name.strip_prefix(prefix)?;
        Some(Column::Option(Part::named(bare)?.name, index))
    })
}

fn row(record: &csv::StringRecord, line: usize, defaults: &RowDefaults, builder: &mut Builder) {
    let mut own = PREFIXES.map(|_| LinkSpec::new());
    let (mut name, mut forward) = ("", Vec::new());
    let (mut template, mut shared) = (defaults.template, defaults.shared);
    let here = || place(defaults.file, line);
    for (column, text) in defaults.columns.iter().zip(record) {
        match column {
            Column::Name => name = text,
            // An empty field counts as absent.
            _ if text.is_empty() => {}
            Column::Match => forward.push(text.to_owned()),
            Column::Template => template = Some(text),
            Column::Shared if text == "true" || text == "false" => shared = text == "true",
            Column::Shared => {
                let reason = format!("'{text}' is neither true nor false");
                builder.refuse(here(), "shared", reason, "write true or false");
            }
            Column::Option(option, prefix) => {
                let spec = &mut own[*prefix];
                let (store, diagnostics) = (&mut builder.store, &mut builder.diagnostics);
                store.set(spec, (option, text), here(), "link", diagnostics);
            }
        }
    }
    let Some(under) = template_of(template, here(), "template", builder) else {
        return;
    };
    let [up, down, both] = own;
    let row = Duplex {
        up: both.overlay(&up),
        down: both.overlay(&down),
    };
    let options = overlay(&overlay(&under, defaults.own), &row);
    let (up, down) = shared_options(options, shared, here(), "shared", builder);
    builder.add_link(NewLink {
        name: name.to_owned(),
        up,
        down,
        matches: Matches {
            forward,
            back: Vec::new(),
        },
        place: here(),
        position: defaults.position,
    });
}
