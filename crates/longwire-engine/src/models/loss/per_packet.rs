//! A list of losses, with one entry per frame.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use longwire_units::random::Stream;

use super::list::{END, end_word};
use super::{ECN, LossDecision, LossModel, PLACE, PlacedLoss, placed};
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::verdict::DropReason;

/// Registry entry.
pub const ENTRY: Entry<PlacedLoss> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "per-packet",
    summary: "losses from a file with an entry per frame that reaches the model: 0, lost, or 1, \
              kept (like Link'Em's loss lists)",
    params: &[
        Param::new("file", Unit::File("1110111\n1 1 0 1\n"))
            .help("file: a 0 or 1 per frame; blanks and newlines are ignored, # starts a comment"),
        END.default("loop"),
        PLACE,
        ECN,
    ],
};

/// Maximum number of frames: 128 MiB.
const FRAMES_MAX: u64 = 1 << 30;

fn build(arguments: &Arguments<'_>) -> Result<PlacedLoss, SpecError> {
    let mut list = PerPacketLoss {
        file: arguments.word("file").unwrap_or_default().to_string(),
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

/// Loss by list.
#[derive(Clone, Debug)]
struct PerPacketLoss {
    file: String,
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
    fn name(&self) -> &'static str {
        INFO.name
    }

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

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = end_word(self.loops);
        write!(f, "per-packet:file={},end={end}", self.file)
    }
}
