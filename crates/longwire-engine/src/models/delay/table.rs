//! Delays with the distribution of a `tc` table.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use longwire_units::{Nanos, parse_signed};

use super::DelayModel;
use super::sampled::{CORRELATION, Common, MAX, MIN, VALUES_MAX, of_values};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "table",
    summary: "distribution of a .dist file of tc: evenly spaced quantiles in units of stddev/8192 \
              from the mean, interpolated linearly and truncated at 0",
    params: &[
        Param::new(
            "file",
            Unit::File("# half of a triangle\n-8192 -5000 -2000\n1000 5000 11192\n"),
        )
        .help(".dist file: integers separated by blanks; # starts a comment"),
        Param::new("mean", Unit::Time)
            .help("delay of the entry 0: the mean, before truncation, of a table with mean 0"),
        Param::new("stddev", Unit::Time).help(
            "delay added by the entry 8192: the standard deviation (jitter) of a table with \
             deviation 8192",
        ),
        MIN,
        MAX,
        CORRELATION,
    ],
};

/// One standard deviation in a table (NETEM_DIST_SCALE).
const SCALE: f64 = 8192.0;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let common = Common::read(arguments)?;
    let file = arguments.word("file").unwrap_or_default();
    let (mean, stddev): (Nanos, Nanos) =
        (arguments.required("mean")?, arguments.required("stddev")?);
    let text = format!("table:file={file},mean={mean},stddev={stddev}");
    let mut entries: Vec<i16> = Vec::new();
    arguments.lines("file", &mut |_, line| read_line(line, &mut entries))?;
    if entries.is_empty() {
        return Err(arguments.file_error("file", "no entries"));
    }
    let (mean, stddev) = (mean.as_nanos() as f64, stddev.as_nanos() as f64);
    let delay = |entry: &i16| mean + f64::from(*entry) / SCALE * stddev;
    let delays = entries.iter().map(delay).collect();
    of_values(arguments, common, text, delays)
}

fn read_line(line: &str, entries: &mut Vec<i16>) -> Result<(), String> {
    let text = line.split('#').next().unwrap_or_default();
    for word in text.split_whitespace() {
        let entry = parse_signed(word)
            .ok()
            .and_then(|entry| i16::try_from(entry).ok());
        let entry =
            entry.ok_or_else(|| format!("'{word}' is not an integer from -32768 to 32767"))?;
        if entries.len() == VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} entries"));
        }
        entries.push(entry);
    }
    Ok(())
}
