//! Delays from a file: a distribution (samples, a `tc` table or points), or a list with one delay
//! per frame.

use alloc::sync::Arc;

use longwire_units::parse_signed;

use super::DelayModel;
use super::distributions::mean_and_stddev;
use super::sampled::{CORRELATION, LOCATION, MAX, MIN, Points, Sampler};
use crate::models::prelude::*;
use crate::trace::{END, End, Quantity};

/// Unit of numbers without a unit.
const UNIT: Param = Param::with_default("unit", Unit::Choice(&["ms", "us", "ns", "s"]), "ms")
    .help("unit of delays written without one");

/// Maximum number of values in a distribution: 128 MiB of samples.
const VALUES_MAX: usize = 1 << 24;

/// Returns the scale of numbers without a unit.
fn scale(arguments: &Arguments<'_>) -> Result<Option<u64>, SpecError> {
    arguments.choice(UNIT.name)?;
    let unit = arguments.word(UNIT.name).unwrap_or_default();
    Ok(Quantity::Delay.scale(unit))
}

/// Returns a line's words, up to a `#`.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let text = line.split('#').next().unwrap_or_default();
    let words = text.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    words.filter(|word| !word.is_empty())
}

/// Reads a file of delays and passes each to `take`.
fn read_delays(
    arguments: &Arguments<'_>,
    take: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<(), SpecError> {
    let scale = scale(arguments)?;
    arguments.lines("file", &mut |_, line| {
        words(line).try_for_each(|word| take(Quantity::Delay.read(word, scale)?))
    })
}

pub(super) const SAMPLES: Entry<Described<dyn DelayModel>> = Entry::new(
    "samples",
    "samples the empirical distribution of the delays in a file, with linearly interpolated \
     quantiles (Hyndman and Fan 1996, definition 7)",
    &[
        Param::new(
            "file",
            Unit::File("# measured at noon\n20.1 20.4\n19.9ms, 22\n"),
        )
        .help("file: delays separated by spaces, commas or newlines; # starts a comment"),
        UNIT,
        LOCATION,
        MIN,
        MAX,
        CORRELATION,
    ],
    build_samples,
);

fn build_samples(arguments: &Arguments<'_>) -> Result<Described<dyn DelayModel>, SpecError> {
    let sampler = Sampler::new(arguments, &[])?;
    let mut delays = Vec::new();
    read_delays(arguments, &mut |delay| {
        if delays.len() == VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} delays"));
        }
        delays.push(delay as f64);
        Ok(())
    })?;
    if delays.is_empty() {
        return Err(arguments.file_error("file", "no delays"));
    }
    sampler.values(delays)
}

pub(super) const CDF: Entry<Described<dyn DelayModel>> = Entry::new(
    "cdf",
    "samples a distribution function given as points in a file, linearly interpolated; the first \
     delay is drawn with the first point's probability",
    &[
        Param::new(
            "file",
            Unit::File("# delay in ms, cumulative probability\n10 0\n20 0.5\n80 100%\n"),
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
    build_cdf,
);

fn build_cdf(arguments: &Arguments<'_>) -> Result<Described<dyn DelayModel>, SpecError> {
    let sampler = Sampler::new(arguments, &[])?;
    let scale = scale(arguments)?;
    let mut points: Vec<(u64, u64)> = Vec::new();
    arguments.lines("file", &mut |_, line| read_point(line, scale, &mut points))?;
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
    sampler.points(Points::at_probabilities(&points))
}

fn probability(steps: u64) -> f64 {
    steps as f64 / Quantity::LOSS_STEPS as f64
}

fn read_point(line: &str, scale: Option<u64>, points: &mut Vec<(u64, u64)>) -> Result<(), String> {
    let words: Vec<&str> = words(line).collect();
    let (delay, steps) = match words.as_slice() {
        [] => return Ok(()),
        [delay, steps] => (delay, steps),
        words => {
            let count = words.len();
            return Err(format!("{count} fields; write a delay and a probability"));
        }
    };
    // Probabilities are parsed as ratios, with the resolution of loss probabilities.
    let ratio = Some(Quantity::LOSS_STEPS);
    let steps = Quantity::Loss
        .read(steps, ratio)
        .map_err(|message| message.replacen(Quantity::Loss.name(), "probability", 1))?;
    let point = (Quantity::Delay.read(delay, scale)?, steps);
    if let Some(above) = points.last() {
        if point.0 < above.0 {
            return Err("delay is below the previous point's; sort the points".to_string());
        }
        if point.1 < above.1 {
            return Err("probability is below the previous point's; sort the points".to_string());
        }
    }
    if points.len() == VALUES_MAX {
        return Err(format!("more than {VALUES_MAX} points"));
    }
    points.push(point);
    Ok(())
}

pub(super) const TABLE: Entry<Described<dyn DelayModel>> = Entry::new(
    "table",
    "distribution of a tc .dist file: evenly spaced quantiles, in units of stddev/8192 from the \
     mean, linearly interpolated and truncated at 0",
    &[
        Param::new(
            "file",
            Unit::File("# half of a triangle\n-8192 -5000 -2000\n1000 5000 11192\n"),
        )
        .help(".dist file: integers separated by spaces; # starts a comment"),
        Param::new("mean", Unit::Time)
            .help("delay for the value 0: the mean, before truncation, if the table has mean 0"),
        Param::new("stddev", Unit::Time).help(
            "delay added by the value 8192: the standard deviation (jitter) if the table has \
             deviation 8192",
        ),
        MIN,
        MAX,
        CORRELATION,
    ],
    build_table,
);

/// One standard deviation in a `tc` table (NETEM_DIST_SCALE).
const SCALE: f64 = 8192.0;

fn build_table(arguments: &Arguments<'_>) -> Result<Described<dyn DelayModel>, SpecError> {
    let (mean, stddev) = mean_and_stddev(arguments)?;
    let sampler = Sampler::new(arguments, &[])?;
    let mut entries: Vec<i16> = Vec::new();
    arguments.lines("file", &mut |_, line| read_entries(line, &mut entries))?;
    if entries.is_empty() {
        return Err(arguments.file_error("file", "no entries"));
    }
    let (mean, stddev) = (mean.as_nanos() as f64, stddev.as_nanos() as f64);
    let delay = |entry: &i16| mean + f64::from(*entry) / SCALE * stddev;
    let delays = entries.iter().map(delay).collect();
    sampler.values(delays)
}

fn read_entries(line: &str, entries: &mut Vec<i16>) -> Result<(), String> {
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

pub(super) const PER_PACKET: Entry<Described<dyn DelayModel>> = Entry::new(
    "per-packet",
    "delays from a file in order, one per frame that reaches the medium (like Link'Em's delay \
     lists)",
    &[
        Param::new("file", Unit::File("20.1 20.4\n19.9ms\n22\n"))
            .help("file: delays separated by spaces, commas or newlines; # starts a comment"),
        UNIT,
        END.help(
            "after the last delay: loop repeats the file, hold keeps the last delay, stop adds \
             no delay",
        ),
    ],
    build_per_packet,
);

/// Maximum number of delays: 256 MiB, or 512 MiB if any exceeds 4.29 s.
const DELAYS_MAX: usize = 1 << 26;

fn build_per_packet(arguments: &Arguments<'_>) -> Result<Described<dyn DelayModel>, SpecError> {
    let mut delays = Delays::Narrow(Vec::new());
    read_delays(arguments, &mut |delay| {
        if delays.len() == DELAYS_MAX {
            return Err(format!("more than {DELAYS_MAX} delays"));
        }
        delays.push(delay);
        Ok(())
    })?;
    if delays.len() == 0 {
        return Err(arguments.file_error("file", "no delays"));
    }
    Ok(arguments.described(Box::new(PerPacket {
        end: End::read(arguments)?,
        next: 0,
        last: Nanos::ZERO,
        delays: Arc::new(delays),
    })))
}

/// Delays in nanoseconds; most lists fit in 32 bits.
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

/// Delays in list order, one per frame.
#[derive(Clone, Debug)]
struct PerPacket {
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

    /// Returns the original frame's delay: the list has one delay per frame.
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
}
