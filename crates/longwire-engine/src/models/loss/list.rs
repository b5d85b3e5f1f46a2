//! Loss of frames by number.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use longwire_units::parse_count;
use longwire_units::random::Stream;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "list",
    summary: "drops frames by number; the first one that reaches the model is 1",
    params: &[
        Param::new("packets", Unit::Text("3;7;9-12"))
            .help("numbers and ranges of numbers, separated by semicolons"),
        END,
        PLACE,
        ECN,
    ],
};

/// Continuation after the end of a list of losses.
pub(super) const END: Param = Param::with_default("end", Unit::Choice(&["stop", "loop"]), "stop")
    .help("after the last number: stop, no losses; loop, repeat");

/// Returns the word of [`END`].
pub(super) fn end_word(loops: bool) -> &'static str {
    if loops { "loop" } else { "stop" }
}

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let text = arguments.read("packets", |text| Ok(text.to_string()))?;
    let ranges = read_ranges(&text);
    let ranges = ranges.map_err(|message| arguments.invalid(format!("packets: {message}")))?;
    let list = ListLoss {
        text,
        ranges,
        loops: arguments.choice(END.name)? == 1,
        number: 0,
        next: 0,
    };
    placed(arguments, list)
}

/// Parses ranges as first and last number, sorted and not adjacent.
fn read_ranges(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let mut ranges = Vec::new();
    for item in text.split(';').map(str::trim) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let number = |text: &str| match parse_count(text.trim()) {
            Ok(0) => Err("the first frame is number 1".to_string()),
            Ok(number) => Ok(number),
            Err(_) => Err(format!("'{item}' is not a number or a range such as 9-12")),
        };
        let range = (number(first)?, number(last)?);
        if range.0 > range.1 {
            return Err(format!("range '{item}' is reversed"));
        }
        ranges.push(range);
    }
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(before) if range.0 <= before.1.saturating_add(1) => {
                before.1 = before.1.max(range.1);
            }
            _ => merged.push(range),
        }
    }
    Ok(merged)
}

/// Loss by number.
#[derive(Clone, Debug)]
struct ListLoss {
    text: String,
    ranges: Vec<(u64, u64)>,
    loops: bool,
    /// Number of the last frame.
    number: u64,
    /// Index of the current or next range.
    next: usize,
}

impl LossModel for ListLoss {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn judge(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> LossDecision {
        self.number = self.number.saturating_add(1);
        let (first, last) = *self.ranges.get(self.next)?;
        let lost = (first..=last).contains(&self.number);
        if self.number == last {
            self.next += 1;
            if self.loops && self.next == self.ranges.len() {
                (self.number, self.next) = (0, 0);
            }
        }
        lost.then_some(DropReason::Loss)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = end_word(self.loops);
        write!(f, "list:packets={},end={end}", self.text)
    }
}
