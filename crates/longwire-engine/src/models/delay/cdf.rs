//! Delays from a distribution function given as points.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::DelayModel;
use super::sampled::{CORRELATION, Common, LOCATION, MAX, MIN, UNIT, VALUES_MAX, of_probabilities};
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::Quantity;

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "cdf",
    summary: "draws from a distribution function given by points in a file, with linear \
              interpolation; the first point has its whole probability",
    params: &[
        Param::new(
            "file",
            Unit::File("# ms, probability of no more\n10 0\n20 0.5\n80 100%\n"),
        )
        .help(
            "file: one point per line, delay and cumulative probability (0.5 or 50%); both \
             non-decreasing, up to 1",
        ),
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
    let text = format!("cdf:file={file},unit={unit}");
    arguments.choice(UNIT.name)?;
    let mut points: Vec<(u64, u64)> = Vec::new();
    arguments.lines("file", &mut |_, line| read_line(line, scale, &mut points))?;
    match points.last() {
        Some((_, Quantity::LOSS_STEPS)) => {}
        Some((_, last)) => {
            let last = probability(*last);
            let message = format!("the last probability is {last}; it must be 1");
            return Err(arguments.file_error("file", message));
        }
        None => return Err(arguments.file_error("file", "no points")),
    }
    let point = |(delay, steps): &(u64, u64)| (*delay as f64, probability(*steps));
    let points: Vec<(f64, f64)> = points.iter().map(point).collect();
    of_probabilities(arguments, common, text, &points)
}

fn probability(steps: u64) -> f64 {
    steps as f64 / Quantity::LOSS_STEPS as f64
}

fn read_line(line: &str, scale: Option<u64>, points: &mut Vec<(u64, u64)>) -> Result<(), String> {
    let text = line.split('#').next().unwrap_or_default();
    let words = text.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let (delay, steps) = match words.as_slice() {
        [] => return Ok(()),
        [delay, steps] => (delay, steps),
        words => {
            let count = words.len();
            return Err(format!("{count} fields; write a delay and a probability"));
        }
    };
    // Probabilities are read as ratios, in the steps of losses.
    let ratio = Some(Quantity::LOSS_STEPS);
    let steps = Quantity::Loss
        .read(steps, ratio)
        .map_err(|message| message.replacen(Quantity::Loss.name(), "probability", 1))?;
    let point = (Quantity::Delay.read(delay, scale)?, steps);
    if let Some(above) = points.last() {
        if point.0 < above.0 {
            return Err("delay is below the previous point's".to_string());
        }
        if point.1 < above.1 {
            return Err("probability is below the previous point's".to_string());
        }
    }
    if points.len() == VALUES_MAX {
        return Err(format!("more than {VALUES_MAX} points"));
    }
    points.push(point);
    Ok(())
}
