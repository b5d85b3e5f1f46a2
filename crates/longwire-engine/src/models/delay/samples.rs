//! Delays with the distribution of measured samples.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::DelayModel;
use super::sampled::{CORRELATION, Common, LOCATION, MAX, MIN, UNIT, VALUES_MAX, of_values};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::Quantity;

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "samples",
    summary: "draws from the distribution of the delays in a file: quantiles with linear \
              interpolation (Hyndman and Fan 1996, definition 7)",
    params: &[
        Param::new(
            "file",
            Unit::File("# measured at noon\n20.1 20.4\n19.9ms, 22\n"),
        )
        .help("file: delays separated by blanks, commas or newlines; # starts a comment"),
        UNIT,
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
};

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let common = Common::read(arguments)?;
    let file = arguments.word("file").unwrap_or_default();
    let unit = arguments.word(UNIT.name).unwrap_or_default();
    let scale = Quantity::Delay.scale(unit);
    let text = format!("samples:file={file},unit={unit}");
    arguments.choice(UNIT.name)?;
    let mut delays = Vec::new();
    arguments.lines("file", &mut |_, line| read_line(line, scale, &mut delays))?;
    if delays.is_empty() {
        return Err(arguments.file_error("file", "no delays"));
    }
    of_values(arguments, common, text, delays)
}

fn read_line(line: &str, scale: Option<u64>, delays: &mut Vec<f64>) -> Result<(), String> {
    let text = line.split('#').next().unwrap_or_default();
    let words = text.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    for word in words.filter(|word| !word.is_empty()) {
        if delays.len() == VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} delays"));
        }
        delays.push(Quantity::Delay.read(word, scale)? as f64);
    }
    Ok(())
}
