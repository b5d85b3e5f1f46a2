//! Links from a CSV file: one a line, and what each column is in its header.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use longwire_engine::presets::Duplex;
use longwire_engine::{LinkSpec, PARTS, Part};

use super::builder::{Builder, Matches, NewLink};
use super::links::template_of;
use super::options::overlay;
use super::problem::{Place, meant};
use super::tree::{self, Placed};
use super::value::Table;

/// A kind of column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Name,
    Match,
    Template,
    Shared,
    /// An option of both directions, of the way up, or of the way down.
    Option(&'static str, Side),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Both,
    Up,
    Down,
}

/// Columns other than options.
const COLUMNS: [(&str, Column); 4] = [
    ("name", Column::Name),
    ("match", Column::Match),
    ("template", Column::Template),
    ("shared", Column::Shared),
];

/// Fields of `[[link]]` that a CSV file takes the place of.
const INSTEAD: [&str; 6] = ["name", "match", "count", "first", "between", "pairing"];

/// The fields that all rows of a file share.
struct Common<'a> {
    file: &'a str,
    columns: Vec<Column>,
    /// The options under a row's own: those of `[[link]]`, and of the template that is
    /// given there.
    own: &'a Duplex,
    template: Option<&'a str>,
    shared: bool,
    position: usize,
}

/// Reads the links of the file that a `[[link]]` names.
pub(super) fn read(item: &Placed<&Table<'_>>, own: &Duplex, builder: &mut Builder) {
    let Some(csv) = tree::text(item.value, "csv") else {
        return;
    };
    if let Some(other) = INSTEAD.iter().find(|name| item.value.contains_key(name)) {
        let reason = format!("there is '{other}' beside csv");
        let remedy = "the file's columns say it; leave one of both out";
        builder
            .complaints
            .refuse(item.span.clone(), "link.csv", reason, remedy);
        return;
    }
    let file = builder.store.files.open_rows(builder.folder, csv.value);
    let mut reader = match file {
        Ok(file) => csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(file),
        Err(error) => {
            let reason = format!("'{}': {error}", csv.value);
            let remedy = "name a file in the same directory";
            builder
                .complaints
                .refuse(csv.span, "link.csv", reason, remedy);
            return;
        }
    };
    let Some(columns) = columns(&mut reader, csv.value, csv.span.clone(), builder) else {
        return;
    };
    let common = Common {
        file: csv.value,
        columns,
        own,
        template: tree::text(item.value, "template").map(|name| name.value),
        shared: tree::flag(item.value, "shared") == Some(true),
        position: item.span.start,
    };
    rows(reader, &common, builder);
}

fn rows(mut reader: csv::Reader<impl Read>, common: &Common, builder: &mut Builder) {
    let mut record = csv::StringRecord::new();
    loop {
        match reader.read_record(&mut record) {
            Ok(false) => return,
            Ok(true) => {
                let line = record
                    .position()
                    .map_or(0, |position| position.line() as usize);
                row(&record, line, common, builder);
            }
            Err(error) => {
                let line = error
                    .position()
                    .map_or(0, |position| position.line() as usize);
                let place = place(common.file, line);
                let remedy = "give every line as many columns as the header";
                builder
                    .complaints
                    .refuse(place, "csv", reason_of(&error), remedy);
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
            format!("there are {len} columns, and {expected_len} in the header")
        }
        csv::ErrorKind::Utf8 { .. } => "it is no text in UTF-8".to_owned(),
        _ => error.to_string(),
    }
}

fn place(file: &str, line: usize) -> Place {
    let file = file.to_owned();
    Place::Row { file, line }
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
            builder
                .complaints
                .refuse(at, "link.csv", reason, "name a file in the same directory");
            return None;
        }
        Err(error) => {
            let remedy = "begin with a line of column names";
            builder
                .complaints
                .refuse(place(file, 1), "csv", reason_of(&error), remedy);
            return None;
        }
    };
    let mut columns = Vec::new();
    for name in &header {
        let problem = match column(name) {
            Some(column) if columns.contains(&column) => Some((
                format!("the column '{name}' is there twice"),
                "leave one out".to_owned(),
            )),
            Some(column) => {
                columns.push(column);
                None
            }
            None => {
                let known = COLUMNS.iter().map(|(name, _)| *name);
                let known = known.chain(PARTS.iter().map(|part| part.name));
                Some((format!("'{name}' is no column"), meant(name, known)))
            }
        };
        if let Some((reason, remedy)) = problem {
            builder
                .complaints
                .refuse(place(file, 1), "csv", reason, remedy);
        }
    }
    if !columns.contains(&Column::Name) {
        let reason = "there is no column 'name'";
        builder
            .complaints
            .refuse(place(file, 1), "csv", reason, "give every link a name");
    }
    (columns.len() == header.len() && columns.contains(&Column::Name)).then_some(columns)
}

fn column(name: &str) -> Option<Column> {
    if let Some((_, column)) = COLUMNS.iter().find(|(known, _)| *known == name) {
        return Some(*column);
    }
    let sides = [("up-", Side::Up), ("down-", Side::Down), ("", Side::Both)];
    sides.into_iter().find_map(|(prefix, side)| {
        let bare = name.strip_prefix(prefix)?;
        Some(Column::Option(Part::named(bare)?.name, side))
    })
}

fn row(record: &csv::StringRecord, line: usize, common: &Common, builder: &mut Builder) {
    let mut own = [LinkSpec::new(), LinkSpec::new(), LinkSpec::new()];
    let (mut name, mut forward) = ("", Vec::new());
    let (mut template, mut shared) = (common.template, common.shared);
    let here = || place(common.file, line);
    for (column, text) in common.columns.iter().zip(record) {
        match column {
            Column::Name => name = text,
            // What is empty is as if there were no such column.
            _ if text.is_empty() => {}
            Column::Match => forward.push(text.to_owned()),
            Column::Template => template = Some(text),
            Column::Shared if text == "true" || text == "false" => shared = text == "true",
            Column::Shared => {
                let reason = format!("'{text}' is neither true nor false");
                builder
                    .complaints
                    .refuse(here(), "shared", reason, "write one of both");
            }
            Column::Option(option, side) => {
                let spec = &mut own[*side as usize];
                let (store, complaints) = (&mut builder.store, &mut builder.complaints);
                store.set(spec, (option, text), here(), "link", complaints);
            }
        }
    }
    let under = match template.map(|name| template_of(name, builder)) {
        None => builder.defaults.clone(),
        Some(Ok(template)) => template,
        Some(Err(remedy)) => {
            let reason = format!("there is no template '{}'", template.unwrap_or_default());
            builder
                .complaints
                .refuse(here(), "template", reason, remedy);
            return;
        }
    };
    let [both, up, down] = own;
    let row = Duplex {
        up: both.overlay(&up),
        down: both.overlay(&down),
    };
    let options = overlay(&overlay(&under, common.own), &row);
    if shared && options.up != options.down {
        let reason = "the link is shared, and its directions differ";
        builder
            .complaints
            .refuse(here(), "shared", reason, "give both the same options");
        return;
    }
    let up = builder.store.keep(options.up);
    let down = (!shared).then(|| builder.store.keep(options.down));
    builder.add_link(NewLink {
        name: name.to_owned(),
        up,
        down: down.map(|down| Arc::clone(&down)),
        matches: Matches {
            forward,
            back: Vec::new(),
        },
        place: here(),
        position: common.position,
    });
}
