//! The ERRANT table: phone measurements by operator and country, as CSV with the columns
//! `operator`, `country`, `rat`, `signal_quality`, `download_kbps`, `upload_kbps` and
//! `latency_ms_avg`.
//!
//! Latency is the round-trip time; each direction gets half. `latency_ms_stdev` is unused: it
//! varies between connections, not between packets.

use longwire_units::{BitRate, Nanos};

use super::Duplex;
use crate::loader::Loader;
use crate::parts::LinkSpec;
use crate::prelude::*;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::Quantity;

/// Name, summary and parameters of the preset.
pub static INFO: ModelInfo = ModelInfo {
    name: "errant",
    summary: "a phone's rates and latencies, from a row of ERRANT's table (Trevisan et al., \
              Computer Networks 176, 2020)",
    params: &[
        Param::new(
            "file",
            Unit::File(
                "operator,country,rat,signal_quality,download_kbps,upload_kbps,latency_ms_avg,latency_ms_stdev\n1,norway,4G,good,21487.6,15707.7,92.9,43.8\n",
            ),
        )
        .help("ERRANT's profiles.csv"),
        Param::new("operator", Unit::Text("1")).help("operator; required if several rows match"),
        Param::new("country", Unit::Text("norway")).help("country; required if several rows match"),
        Param::new("rat", Unit::Text("4G")).help("technology; required if several rows match"),
        Param::new("quality", Unit::Text("good")).help(
            "signal quality; required if several rows match",
        ),
    ],
};

/// Row selectors: parameters and their columns.
const KEYS: [(&str, &str); 4] = [
    ("operator", "operator"),
    ("country", "country"),
    ("rat", "rat"),
    ("quality", "signal_quality"),
];

/// Value columns.
const VALUES: [&str; 3] = ["download_kbps", "upload_kbps", "latency_ms_avg"];

const BITS_PER_KBIT: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Reads the row that matches the parameters, which must be unique.
pub fn read(parameters: &str, loader: &dyn Loader) -> Result<Duplex, SpecError> {
    let arguments = Arguments::parse(&INFO, parameters, loader)?;
    let mut table = ErrantTable::default();
    arguments.lines("file", &mut |_, line| table.line(&arguments, line))?;
    let (request, rows) = (describe_request(&arguments), table.rows.join(", "));
    let message = match table.fitting.as_slice() {
        [row] => return Ok(row.clone()),
        [] => format!("no row for {request}; rows exist for {rows}"),
        _ => format!(
            "several rows for {request}; set more of operator, country, rat and quality; rows \
             exist for {rows}"
        ),
    };
    Err(arguments.file_error("file", message))
}

/// Returns the parameters as text.
fn describe_request(arguments: &Arguments<'_>) -> String {
    let keys = KEYS.iter().filter_map(|(key, _)| arguments.word(key));
    let words: Vec<&str> = keys.collect();
    if words.is_empty() {
        "any kind".to_owned()
    } else {
        words.join("/")
    }
}

/// Reader state.
#[derive(Default)]
struct ErrantTable {
    /// Index of each column of [`KEYS`], then of [`VALUES`].
    columns: Option<Vec<usize>>,
    /// Selectors of each row, for messages.
    rows: Vec<String>,
    fitting: Vec<Duplex>,
}

/// Maximum number of rows shown in a message.
const SHOWN: usize = 100;

impl ErrantTable {
    fn line(&mut self, arguments: &Arguments<'_>, line: &str) -> Result<(), String> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let Some(columns) = &self.columns else {
            let names = KEYS.iter().map(|(_, column)| column).chain(&VALUES);
            let find = |name: &&str| {
                let found = cells.iter().position(|cell| cell == name);
                found.ok_or_else(|| format!("no column '{name}'"))
            };
            self.columns = Some(names.map(find).collect::<Result<_, _>>()?);
            return Ok(());
        };
        let cell = |place: usize| {
            let index = columns[place];
            let found = cells.get(index).copied();
            found.ok_or_else(|| format!("no field {}", index + 1))
        };
        let mut row = Vec::with_capacity(KEYS.len());
        let mut fits = true;
        for (place, (key, _)) in KEYS.iter().enumerate() {
            let is = cell(place)?;
            fits &= arguments
                .word(key)
                .is_none_or(|requested| requested.eq_ignore_ascii_case(is));
            row.push(is);
        }
        if self.rows.len() < SHOWN {
            self.rows.push(row.join("/"));
        }
        if fits && self.fitting.len() < 2 {
            let value = |nth: usize| cell(KEYS.len() + nth);
            let (down, up, latency) = (value(0)?, value(1)?, value(2)?);
            self.fitting.push(link(down, up, latency)?);
        }
        Ok(())
    }
}

fn link(down: &str, up: &str, latency: &str) -> Result<Duplex, String> {
    let latency = Quantity::Delay.read(latency, Some(NANOS_PER_MILLI))?;
    // Rounded to microseconds, for readable options.
    let delay = Nanos::from_micros((latency / 2 + 500) / 1_000);
    let one_way = |rate: &str| {
        let bits = Quantity::Rate.read(rate, Some(BITS_PER_KBIT))?;
        let rate = BitRate::from_bits_per_sec(bits);
        let rate = rate.ok_or("rate: zero; use another row")?;
        Ok::<_, String>(LinkSpec::new().rate(rate).delay(delay))
    };
    Ok(Duplex {
        up: one_way(up)?,
        down: one_way(down)?,
    })
}
