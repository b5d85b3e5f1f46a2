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
    summary: "delays distributed as a table of tc says, a .dist file: whole numbers, spread \
              evenly over the distribution, in steps of stddev/8192 from the mean, with straight \
              lines between them; 0 is always a bound",
    params: &[
        Param::new(
            "file",
            Unit::File("# half of a triangle\n-8192 -5000 -2000\n1000 5000 11192\n"),
        )
        .help("the .dist file: whole numbers between blanks, # begins a remark"),
        Param::new("mean", Unit::Time).help(
            "the delay of an entry of 0: the mean, before the bounds cut, of a table whose own \
             mean is 0",
        ),
        Param::new("stddev", Unit::Time).help(
            "how much an entry of 8192 adds: the standard deviation (jitter) of a table whose own \
             is 8192",
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
        return Err(arguments.file_error("file", "it holds no entries"));
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
        let entry = entry.ok_or_else(|| {
            format!("'{word}' is no whole number from -32768 to 32767, as a .dist file has them")
        })?;
        if entries.len() == VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} entries"));
        }
        entries.push(entry);
    }
    Ok(())
}
