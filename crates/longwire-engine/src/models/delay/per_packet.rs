//! A list of delays, one per frame.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use longwire_units::Nanos;
use longwire_units::random::Stream;

use super::DelayModel;
use super::sampled::UNIT;
use crate::frame_context::FrameContext;
use crate::models::Entry;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};
use crate::trace::{END, End, Quantity};

/// Registry entry.
pub const ENTRY: Entry<Box<dyn DelayModel>> = Entry { info: &INFO, build };

static INFO: ModelInfo = ModelInfo {
    name: "per-packet",
    summary: "the delays of a file in order, one per frame that reaches the medium (like \
              Link'Em's delay lists)",
    params: &[
        Param::new("file", Unit::File("20.1 20.4\n19.9ms\n22\n"))
            .help("file: delays separated by blanks, commas or newlines; # starts a comment"),
        UNIT,
        END.help("after the last delay: loop repeats the file, hold keeps it, stop adds no delay"),
    ],
};

/// Maximum number of delays: 256 MiB, or twice that if any is above 4.29 s.
const DELAYS_MAX: usize = 1 << 26;

fn build(arguments: &Arguments<'_>) -> Result<Box<dyn DelayModel>, SpecError> {
    let unit = arguments.word(UNIT.name).unwrap_or_default().to_string();
    let scale = Quantity::Delay.scale(&unit);
    arguments.choice(UNIT.name)?;
    let mut delays = Delays::Narrow(Vec::new());
    arguments.lines("file", &mut |_, line| read_line(line, scale, &mut delays))?;
    if delays.len() == 0 {
        return Err(arguments.file_error("file", "no delays"));
    }
    Ok(Box::new(PerPacket {
        file: arguments.word("file").unwrap_or_default().to_string(),
        unit,
        end: End::read(arguments)?,
        next: 0,
        last: Nanos::ZERO,
        delays: Arc::new(delays),
    }))
}

fn read_line(line: &str, scale: Option<u64>, delays: &mut Delays) -> Result<(), String> {
    let text = line.split('#').next().unwrap_or_default();
    let words = text.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    for word in words.filter(|word| !word.is_empty()) {
        if delays.len() == DELAYS_MAX {
            return Err(format!("more than {DELAYS_MAX} delays"));
        }
        delays.push(Quantity::Delay.read(word, scale)?);
    }
    Ok(())
}

/// Delays in nanoseconds; most lists fit into 32 bits.
#[derive(Clone, Debug)]
enum Delays {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Delays {
    fn push(&mut self, delay: u64) {
        match self {
            Delays::Narrow(delays) => match u32::try_from(delay) {
                Ok(delay) => delays.push(delay),
                Err(_) => {
                    let wide = delays.iter().map(|delay| u64::from(*delay));
                    *self = Delays::Wide(wide.chain([delay]).collect());
                }
            },
            Delays::Wide(delays) => delays.push(delay),
        }
    }

    fn len(&self) -> usize {
        match self {
            Delays::Narrow(delays) => delays.len(),
            Delays::Wide(delays) => delays.len(),
        }
    }

    #[inline]
    fn at(&self, index: usize) -> u64 {
        match self {
            Delays::Narrow(delays) => u64::from(delays[index]),
            Delays::Wide(delays) => delays[index],
        }
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|index| self.at(index))
    }
}

/// Delays in list order.
#[derive(Clone, Debug)]
struct PerPacket {
    file: String,
    unit: String,
    end: End,
    /// Shared by clones.
    delays: Arc<Delays>,
    next: usize,
    /// Delay of the last frame.
    last: Nanos,
}

impl DelayModel for PerPacket {
    fn draw(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        if self.next == self.delays.len() {
            match self.end {
                End::Loop => self.next = 0,
                End::Hold => return self.last,
                End::Stop => {
                    self.last = Nanos::ZERO;
                    return self.last;
                }
            }
        }
        self.last = Nanos::from_nanos(self.delays.at(self.next));
        self.next += 1;
        self.last
    }

    /// Returns the frame's own delay: the list has one per frame.
    fn draw_copy(&mut self, _frame: &FrameContext<'_>, _stream: &mut Stream) -> Nanos {
        self.last
    }

    fn least(&self) -> Nanos {
        match self.end {
            End::Stop => Nanos::ZERO,
            _ => Nanos::from_nanos(self.delays.iter().min().unwrap_or(0)),
        }
    }

    /// Returns the mean of the list, or its last delay if that holds forever.
    fn mean(&self) -> Nanos {
        let count = self.delays.len();
        if self.end == End::Hold {
            return Nanos::from_nanos(self.delays.at(count - 1));
        }
        let sum: u128 = self.delays.iter().map(u128::from).sum();
        Nanos::from_nanos(((sum + count as u128 / 2) / count as u128) as u64)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PerPacket {
            file, unit, end, ..
        } = self;
        write!(f, "per-packet:file={file},unit={unit},end={end}")
    }
}
