//! Losses by frame number: every n-th frame, a list, or a file with one entry per frame.

use alloc::sync::Arc;

use longwire_units::parse_count;

use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::coin::EveryNth;
use crate::models::prelude::*;

pub(super) const NTH: Entry<PlacedLoss> = Entry::new(
    "nth",
    "drops every n-th frame that reaches the model",
    &[
        Param::new("every", Unit::Count).help("distance between lost frames; 1 drops all"),
        Param::with_default("offset", Unit::Count, "0").help("frames to skip first"),
        PLACE,
        ECN,
    ],
    |arguments| placed(arguments, EveryNth::read(arguments, "drops")?),
);

impl LossModel for EveryNth {
    fn judge(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> LossDecision {
        self.chooses().then_some(DropReason::Loss)
    }
}

pub(super) const LIST: Entry<PlacedLoss> = Entry::new(
    "list",
    "drops frames by number, counted from 1 for the first frame that reaches the model",
    &[
        Param::new("packets", Unit::Text("3;7;9-12"))
            .help("numbers and ranges, separated by semicolons"),
        END,
        PLACE,
        ECN,
    ],
    build_list,
);

/// Behaviour after the last entry of a loss list.
pub(super) const END: Param = Param::with_default("end", Unit::Choice(&["stop", "loop"]), "stop")
    .help("after the last entry: stop loses no more frames, loop repeats the list");

fn build_list(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let ranges = read_ranges(arguments.required_text("packets")?);
    let ranges = ranges.map_err(|message| arguments.invalid(format!("packets: {message}")))?;
    let list = ListLoss {
        ranges,
        loops: arguments.choice(END.name)? == 1,
        number: 0,
        next: 0,
    };
    placed(arguments, list)
}

/// Parses ranges into sorted, non-adjacent (first, last) pairs.
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
            return Err(format!(
                "range '{item}' is reversed; write the lower number first"
            ));
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

/// Loss of listed frame numbers.
#[derive(Clone, Debug)]
struct ListLoss {
    ranges: Vec<(u64, u64)>,
    loops: bool,
    /// Number of the last frame.
    number: u64,
    /// Index of the current or next range.
    next: usize,
}

impl LossModel for ListLoss {
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
}

pub(super) const PER_PACKET: Entry<PlacedLoss> = Entry::new(
    "per-packet",
    "losses from a file with one entry per frame that reaches the model: 0 loses it, 1 keeps it \
     (like Link'Em's loss lists)",
    &[
        Param::new("file", Unit::File("1110111\n1 1 0 1\n"))
            .help("file: a 0 or 1 per frame; spaces and newlines are ignored, # starts a comment"),
        END.default("loop"),
        PLACE,
        ECN,
    ],
    build_per_packet,
);

/// Maximum number of frames: 128 MiB.
const FRAMES_MAX: u64 = 1 << 30;

fn build_per_packet(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let mut list = PerPacketLoss {
        loops: arguments.choice(END.name)? == 1,
        lost: Arc::default(),
        frames: 0,
        next: 0,
    };
    arguments.lines("file", &mut |_, line| list.read_line(line))?;
    if list.frames == 0 {
        return Err(arguments.file_error("file", "no entries"));
    }
    placed(arguments, list)
}

/// Loss from a file with one entry per frame.
#[derive(Clone, Debug)]
struct PerPacketLoss {
    loops: bool,
    /// One bit per frame; shared by clones.
    lost: Arc<Vec<u64>>,
    frames: u64,
    next: u64,
}

impl PerPacketLoss {
    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let text = line.split('#').next().unwrap_or_default();
        for (place, mark) in text.chars().enumerate() {
            match mark {
                '0' | '1' => self.push(mark == '0')?,
                mark if mark.is_whitespace() => {}
                mark => {
                    let column = place + 1;
                    return Err(format!("column {column}: '{mark}' is neither 0 nor 1"));
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, lost: bool) -> Result<(), String> {
        if self.frames == FRAMES_MAX {
            return Err(format!("more than {FRAMES_MAX} frames"));
        }
        let words = Arc::make_mut(&mut self.lost);
        if self.frames.is_multiple_of(64) {
            words.push(0);
        }
        if let Some(word) = words.last_mut() {
            *word |= u64::from(lost) << (self.frames % 64);
        }
        self.frames += 1;
        Ok(())
    }
}

impl LossModel for PerPacketLoss {
    fn judge(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> LossDecision {
        if self.next == self.frames {
            if !self.loops {
                return None;
            }
            self.next = 0;
        }
        let word = self.lost[(self.next / 64) as usize];
        let lost = word >> (self.next % 64) & 1 == 1;
        self.next += 1;
        lost.then_some(DropReason::Loss)
    }
}
