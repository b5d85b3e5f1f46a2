//! RED's parameters.

use core::fmt;

use longwire_units::{BitRate, Bytes, Packets, Probability, parse_ratio};

use super::super::parameters::{self, BOOLEAN};
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

pub(super) static INFO: ModelInfo = ModelInfo {
    name: "red",
    summary: "random early detection (Floyd and Jacobson 1993), gentle (Floyd 2000) and adaptive \
              (Floyd, Gummadi and Shenker 2001)",
    params: &[
        parameters::limit("1000p"),
        parameters::LIMIT_BYTES,
        MIN,
        MAX,
        MAXP,
        Param::new("weight", Unit::Ratio).help(
            "EWMA weight of the average queue length; default: 0.002, or 1 - exp(-1 / packets per \
             second) with adaptive=true",
        ),
        Param::with_default("gentle", BOOLEAN, "true")
            .help("raise the probability from maxp to 1 between max and 2·max"),
        Param::with_default("adaptive", BOOLEAN, "false")
            .help("adapt maxp every 500ms to keep the average half way between min and max"),
        Param::with_default("unit", Unit::Choice(&["packets", "bytes"]), "packets").help(
            "unit of the queue length; with bytes, min and max count mean packets, and drops are \
             proportional to frame length",
        ),
        PACKET,
        Param::new("bandwidth", Unit::Rate)
            .help("service rate assumed for idle times; default: the link's, or 10mbit if unknown"),
        parameters::ecn("false"),
    ],
};

const MIN: Param = Param::with_default("min", Unit::Packets, "5p")
    .help("average queue below which nothing is dropped");

const MAX: Param = Param::with_default("max", Unit::Packets, "15p")
    .help("average queue at which the probability is maxp");

const MAXP: Param = Param::with_default("maxp", Unit::Probability, "10%")
    .help("drop probability at max; with adaptive=true, the initial one");

const PACKET: Param = Param::with_default("packet", Unit::Size, "1000b")
    .help("mean packet length, for idle times, weights and unit=bytes");

/// The parameters of RED's control law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedLaw {
    /// Average below which no frame is dropped.
    pub min: Packets,
    /// Average at which the probability is `maxp`; at least `min`, and not zero.
    pub max: Packets,
    /// Probability at `max`; initial value with `adaptive`.
    pub maxp: Probability,
    /// Weight of an arrival in the average, 0 to 1.
    pub weight: Option<f64>,
    /// Whether the probability continues to rise above `max`.
    pub gentle: bool,
    /// Whether `maxp` adapts.
    pub adaptive: bool,
    /// Whether the queue is measured in bytes.
    pub in_bytes: bool,
    /// Mean packet size; not zero.
    pub packet: Bytes,
    /// Rate for counting idle time in packets.
    pub bandwidth: Option<BitRate>,
    /// Whether ECN-capable frames are marked instead of dropped.
    pub ecn: bool,
}

impl RedLaw {
    pub(super) fn read(arguments: &Arguments) -> Result<RedLaw, SpecError> {
        let weight = match arguments.word("weight") {
            Some(_) => Some(arguments.read("weight", parse_ratio)?),
            None => None,
        };
        let law = RedLaw {
            min: arguments.required::<Packets>("min")?,
            max: arguments.required::<Packets>("max")?,
            maxp: arguments.required::<Probability>("maxp")?,
            weight,
            gentle: parameters::read_bool(arguments, "gentle")?,
            adaptive: parameters::read_bool(arguments, "adaptive")?,
            in_bytes: arguments.choice("unit")? == 1,
            packet: parameters::read_size(arguments, "packet")?,
            bandwidth: arguments.optional("bandwidth")?,
            ecn: parameters::read_bool(arguments, "ecn")?,
        };
        if law.max < law.min {
            return Err(arguments.invalid("max is below min; 3·min is common"));
        }
        if law.max == Packets(0) {
            return Err(arguments.invalid("max=0p drops all frames; the minimum is max=1p"));
        }
        if law.weight == Some(0.0) {
            return Err(arguments.invalid("weight=0 freezes the average; 0.002 is common"));
        }
        Ok(law)
    }
}

impl fmt::Display for RedLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "min={},max={},maxp={}", self.min, self.max, self.maxp)?;
        if let Some(weight) = self.weight {
            write!(f, ",weight={weight}")?;
        }
        let unit = if self.in_bytes { "bytes" } else { "packets" };
        let (gentle, adaptive, packet) = (self.gentle, self.adaptive, self.packet);
        write!(
            f,
            ",gentle={gentle},adaptive={adaptive},unit={unit},packet={packet}"
        )?;
        if let Some(bandwidth) = self.bandwidth {
            write!(f, ",bandwidth={bandwidth}")?;
        }
        write!(f, ",ecn={}", self.ecn)
    }
}
