//! Weighted sizes, in a fixed round or at random: given on the command line, read from a file, or
//! those of the simple IMIX.

use std::fmt;

use longwire_engine::models::Entry;
use longwire_engine::spec::{Arguments, Param, SpecError, Unit};
use longwire_units::parse_count;
use longwire_units::random::Stream;

use super::{FCS, Fcs, SizeModel};

/// Registry entry of the simple IMIX.
pub(super) const IMIX: Entry<Box<dyn SizeModel>> = Entry::new(
    "imix",
    "simple Internet mix: IP packets of 40, 576 and 1500 bytes in the ratio 7:4:1, or Ethernet \
     frames of 64, 594 and 1518 bytes with FCS (predates RFC 6985, which standardises the \
     notation)",
    &[
        ORDER,
        FCS.default("with").help(
            "with: frames of 60, 590 and 1514 bytes before the device adds the FCS; without: 64, \
             594 and 1518 bytes",
        ),
    ],
    |arguments| Weighted::build("imix:", SIMPLE.to_vec(), arguments),
);

/// Sizes with FCS, and weights. The smallest packet is padded to the minimum size of an Ethernet
/// frame.
const SIMPLE: [(u64, u64); 3] = [(64, 7), (594, 4), (1_518, 1)];

/// Registry entry of a mix of sizes.
pub(super) const MIX: Entry<Box<dyn SizeModel>> = Entry::new(
    "mix",
    "several sizes with weights",
    &[
        Param::new("sizes", Unit::Text("60/7;590/4;1514/1"))
            .help("SIZE/WEIGHT;SIZE/WEIGHT…, quoted for the shell; the default weight is 1"),
        ORDER,
        FCS,
    ],
    build_mix,
);

fn build_mix(arguments: &Arguments<'_>) -> Result<Box<dyn SizeModel>, SpecError> {
    let text = arguments.read("sizes", |text| Ok(text.to_string()))?;
    let items = text.split(';').map(str::trim);
    let items = items.filter(|item| !item.is_empty());
    let written: Result<Vec<(u64, u64)>, String> = items.map(read_weighted).collect();
    let written = written.map_err(|message| arguments.invalid(message))?;
    let shown = written.iter();
    let shown = shown.map(|(size, weight)| format!("{size}/{weight}"));
    let head = format!("mix:sizes={},", shown.collect::<Vec<_>>().join(";"));
    Weighted::build(&head, written, arguments)
}

/// Registry entry of sizes from a file.
pub(super) const LIST: Entry<Box<dyn SizeModel>> = Entry::new(
    "list",
    "sizes and weights from a file",
    &[
        Param::new("file", Unit::File("# size, weight\n60 7\n590 4\n1514\n")).help(
            "file with one size per line, followed by its weight (default 1); # starts a \
             comment",
        ),
        ORDER,
        FCS,
    ],
    build_list,
);

fn build_list(arguments: &Arguments<'_>) -> Result<Box<dyn SizeModel>, SpecError> {
    let file = arguments.word("file").unwrap_or_default().to_string();
    let mut written: Vec<(u64, u64)> = Vec::new();
    arguments.lines("file", &mut |_, line| {
        let text = line.split('#').next().unwrap_or_default();
        let mut words = text.split_whitespace();
        let Some(size) = words.next() else {
            return Ok(());
        };
        let (size, mut weight) = read_weighted(size)?;
        if let Some(word) = words.next() {
            weight = read_weighted(word)?.0;
        }
        // Add up the weights of repeated sizes, so that a list of recorded frame sizes works too.
        match written.iter_mut().find(|(known, _)| *known == size) {
            Some((_, known)) => *known = known.saturating_add(weight),
            None => written.push((size, weight)),
        }
        match words.next() {
            Some(word) => Err(format!("unexpected '{word}' after size and weight")),
            None => Ok(()),
        }
    })?;
    if written.is_empty() {
        return Err(arguments.file_error("file", "no sizes"));
    }
    Weighted::build(&format!("list:file={file},"), written, arguments)
}

/// Parameter for the order of sizes.
const ORDER: Param = Param::with_default("order", Unit::Choice(&["round", "random"]), "round")
    .help(
        "round: repeat a sequence that spaces each size evenly (RFC 6985 requires a known \
         sequence); random: draw each size independently",
    );

/// Maximum length of a round; a longer round would look like a random order.
const ROUND_MAX: u64 = 1 << 16;

/// Maximum number of sizes in a mix.
const SIZES_MAX: usize = 4_096;

const WEIGHT_MAX: u64 = 1 << 32;

/// Sizes with weights.
#[derive(Clone, Debug)]
struct Weighted {
    /// Model in command-line syntax, up to `order=`.
    head: String,
    /// Sizes as written, and their weights.
    written: Vec<(u64, u64)>,
    fcs: Fcs,
    random: bool,
    /// Frame sizes of a round, in order; empty for random order.
    round: Vec<u32>,
    /// Frame sizes with cumulative weights.
    upto: Vec<(u32, u64)>,
}

impl Weighted {
    /// Builds a mix from sizes and weights as written; `head` is its description up to `order=`.
    fn build(
        head: &str,
        written: Vec<(u64, u64)>,
        arguments: &Arguments<'_>,
    ) -> Result<Box<dyn SizeModel>, SpecError> {
        let fcs = Fcs::read(arguments)?;
        let random = arguments.choice(ORDER.name)? == 1;
        let refuse = |message: String| Err(arguments.invalid(message));
        if written.len() > SIZES_MAX {
            return refuse(format!("more than {SIZES_MAX} sizes"));
        }
        let (mut upto, mut total) = (Vec::new(), 0u64);
        for (size, weight) in &written {
            let size = fcs.frame(*size, arguments)?;
            if *weight > WEIGHT_MAX {
                return refuse(format!("a weight of {weight} is above {WEIGHT_MAX}"));
            }
            total += weight;
            upto.push((size, total));
        }
        if total == 0 {
            return refuse("no size has a weight above 0; raise one".into());
        }
        let mut weighted = Weighted {
            head: head.to_owned(),
            written,
            fcs,
            random,
            round: Vec::new(),
            upto,
        };
        if !random {
            let divisor = weighted.written.iter().fold(0, |a, (_, b)| gcd(a, *b));
            if total / divisor > ROUND_MAX {
                let frames = total / divisor;
                return refuse(format!(
                    "a round would have {frames} frames, more than {ROUND_MAX}; write smaller \
                     weights, or order=random"
                ));
            }
            weighted.round = weighted.spread(divisor);
        }
        Ok(Box::new(weighted))
    }

    /// Returns a round with each size evenly spaced: the size with the largest deficit always comes
    /// next.
    fn spread(&self, divisor: u64) -> Vec<u32> {
        let sizes = self.upto.iter().map(|(size, _)| *size);
        let weights = self.written.iter().map(|(_, weight)| weight / divisor);
        let parts: Vec<(u32, u64)> = sizes.zip(weights).collect();
        let total: u64 = parts.iter().map(|(_, weight)| weight).sum();
        let mut deficit = vec![0i64; parts.len()];
        let mut round = Vec::with_capacity(total as usize);
        for _ in 0..total {
            let mut chosen = 0;
            for (index, (_, weight)) in parts.iter().enumerate() {
                deficit[index] += *weight as i64;
                if deficit[index] > deficit[chosen] {
                    chosen = index;
                }
            }
            deficit[chosen] -= total as i64;
            round.push(parts[chosen].0);
        }
        round
    }
}

impl SizeModel for Weighted {
    #[inline]
    fn draw(&self, number: u64, stream: &mut Stream) -> u32 {
        if let Some(last) = (self.round.len() as u64).checked_sub(1) {
            // Most rounds are shorter than 2^16, so the division is cheap.
            return self.round[(number % (last + 1)) as usize];
        }
        let total = self.upto.last().map_or(1, |(_, total)| *total);
        let draw = stream.up_to(total - 1);
        let index = self.upto.partition_point(|(_, upto)| *upto <= draw);
        self.upto[index].0
    }

    fn each(&self, take: &mut dyn FnMut(u32, f64)) {
        let total = self.upto.last().map_or(1, |(_, total)| *total) as f64;
        for ((size, _), (_, weight)) in self.upto.iter().zip(&self.written) {
            if *weight > 0 {
                take(*size, *weight as f64 / total);
            }
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.random { "random" } else { "round" };
        write!(f, "{}order={order},fcs={}", self.head, self.fcs)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Parses a size with an optional weight: `594/4`, `594:4` or `594`.
fn read_weighted(text: &str) -> Result<(u64, u64), String> {
    let (size, weight) = text
        .split_once(['/', ':'])
        .map_or((text, "1"), |(size, weight)| (size.trim(), weight.trim()));
    let number = |text: &str| {
        let number = parse_count(text.trim());
        number.map_err(|_| format!("'{text}' is neither a size nor SIZE/WEIGHT such as 594/4"))
    };
    Ok((number(size)?, number(weight)?))
}
