//! DualPI2's parameters.

use alloc::format;
use core::fmt;

use longwire_units::{Bytes, Nanos, Packets, parse_count, parse_real};

use super::super::difference;
use super::super::parameters;
use crate::spec::{Arguments, ModelInfo, Param, SpecError, Unit};

pub(super) static INFO: ModelInfo = ModelInfo {
    name: "dualpi2",
    summary: "two queues with coupled control (RFC 9332): a shallow one for L4S, ECT(1) and CE, \
              and a classic one under PI2",
    params: &[
        parameters::limit("10000p"),
        parameters::LIMIT_BYTES.help(
            "maximum bytes in both queues, of which one mtu is kept free; default: unlimited",
        ),
        Param::with_default("target", Unit::Time, "15ms").help("target delay of the classic queue"),
        Param::with_default("rtt-max", Unit::Time, "100ms")
            .help("longest expected round trip; determines the gains"),
        TUPDATE,
        COUPLING,
        Param::with_default("l4s-min", Unit::Time, "800us")
            .help("sojourn time from which L4S frames may be marked"),
        Param::with_default("l4s-range", Unit::Time, "400us")
            .help("delay range over which the marking probability rises to 1; 0: a step"),
        Param::with_default("l4s-packets", Unit::Packets, "1p")
            .help("queued L4S frames up to which delay marks none"),
        Param::with_default("scheduler", Unit::Choice(&["wrr", "ts-fifo"]), "wrr")
            .help("wrr: weighted round robin; ts-fifo: time-shifted FIFO"),
        Param::with_default("weight", Unit::Count, "15")
            .help("wrr: L4S bytes per classic byte while both wait, 1 to 1000"),
        TSHIFT,
        Param::with_default("mtu", Unit::Size, "1514b").help("longest frame, for limit-bytes"),
    ],
};

const TUPDATE: Param = Param::new("tupdate", Unit::Time).help(
    "update interval of the probabilities, at least 10us; default: the minimum of target and \
     rtt-max/3",
);

const COUPLING: Param = Param::with_default("coupling", Unit::Real, "2")
    .help("coupling factor k between the two queues, 0.1 to 100");

const TSHIFT: Param = Param::with_default("tshift", Unit::Time, "50ms")
    .help("ts-fifo: time added to the sojourn time of L4S frames");

/// Scheduler between the two queues (RFC 9332, section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DualScheduler {
    /// Weighted round robin: bytes of L4S per byte of classic traffic while both are
    /// backlogged; not zero.
    WeightedRoundRobin(u32),
    /// The head with the longest waiting time first; this time is added to the L4S head's.
    TimeShiftedFifo(Nanos),
}

/// The parameters of DualPI2 (RFC 9332, figure 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Law {
    /// Target delay of the classic queue.
    pub target: Nanos,
    /// Maximum expected round trip (`RTT_max`); not zero.
    pub rtt_max: Nanos,
    /// Interval between updates of the probabilities; not zero.
    pub tupdate: Nanos,
    /// Coupling factor `k`.
    pub coupling: f64,
    /// Delay above which L4S frames may be marked (`minTh`).
    pub l4s_min: Nanos,
    /// Range of delays over which the probability rises to 1 (`range`).
    pub l4s_range: Nanos,
    /// Up to this many L4S frames, none is marked for its delay (`Th_len`).
    pub l4s_packets: Packets,
    /// Scheduler between the two queues.
    pub scheduler: DualScheduler,
    /// Maximum frame length, for a limit in bytes.
    pub mtu: Bytes,
}

/// Maximum ticks for a probability of 1 to decay on an idle link: bounds the computation
/// after the longest pause to tens of milliseconds.
const DRAIN_TICKS_MAX: f64 = 1e7;

impl DualPi2Law {
    pub(super) fn read(arguments: &Arguments) -> Result<DualPi2Law, SpecError> {
        let least = Nanos::from_micros(10);
        let target = parameters::read_time(arguments, "target", Nanos::from_nanos(1))?;
        let rtt_max = parameters::read_time(arguments, "rtt-max", least)?;
        let tupdate = match arguments.word("tupdate") {
            Some(_) => parameters::read_time(arguments, "tupdate", least)?,
            None => target
                .min(Nanos::from_nanos(rtt_max.as_nanos() / 3))
                .max(least),
        };
        let weight = arguments.read("weight", parse_count)?;
        let law = DualPi2Law {
            target,
            rtt_max,
            tupdate,
            coupling: arguments.read("coupling", parse_real)?,
            l4s_min: arguments.required("l4s-min")?,
            l4s_range: arguments.required("l4s-range")?,
            l4s_packets: arguments.required("l4s-packets")?,
            scheduler: match arguments.choice("scheduler")? {
                0 => DualScheduler::WeightedRoundRobin(weight.min(1_000) as u32),
                _ => DualScheduler::TimeShiftedFifo(arguments.required("tshift")?),
            },
            mtu: arguments.required("mtu")?,
        };
        if !(1..=1_000).contains(&weight) {
            return Err(arguments.invalid(format!("weight={weight} is outside 1..1000")));
        }
        if !(0.1..=100.0).contains(&law.coupling) {
            let message = format!("coupling={} is outside 0.1..100", law.coupling);
            return Err(arguments.invalid(message));
        }
        if law.alpha() * difference(target, Nanos::ZERO) * DRAIN_TICKS_MAX < 1.0 {
            return Err(arguments.invalid(format!(
                "target={target} and tupdate={tupdate} are too short for rtt-max={rtt_max}: the \
                 control would need more than 10 million updates to settle"
            )));
        }
        Ok(law)
    }

    /// Returns the integral gain, in Hz: `0.1 tupdate / rtt_max^2`.
    pub fn alpha(&self) -> f64 {
        let (tupdate, rtt_max) = self.seconds();
        0.1 * tupdate / (rtt_max * rtt_max)
    }

    /// Returns the proportional gain, in Hz: `0.3 / rtt_max`.
    pub fn beta(&self) -> f64 {
        0.3 / self.seconds().1
    }

    /// Returns the probability from which ECN-capable classic frames are dropped too
    /// (`p_Cmax`): `min(1 / k^2, 1)`.
    pub fn classic_max(&self) -> f64 {
        f64::min(1.0 / (self.coupling * self.coupling), 1.0)
    }

    fn seconds(&self) -> (f64, f64) {
        let seconds = |time| difference(time, Nanos::ZERO);
        (seconds(self.tupdate), seconds(self.rtt_max))
    }
}

impl fmt::Display for DualPi2Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, rtt_max, tupdate) = (self.target, self.rtt_max, self.tupdate);
        write!(f, "target={target},rtt-max={rtt_max},tupdate={tupdate}")?;
        let (min, range, packets) = (self.l4s_min, self.l4s_range, self.l4s_packets);
        write!(f, ",coupling={}", self.coupling)?;
        write!(f, ",l4s-min={min},l4s-range={range},l4s-packets={packets}")?;
        match self.scheduler {
            DualScheduler::WeightedRoundRobin(weight) => {
                write!(f, ",scheduler=wrr,weight={weight}")?;
            }
            DualScheduler::TimeShiftedFifo(tshift) => {
                write!(f, ",scheduler=ts-fifo,tshift={tshift}")?;
            }
        }
        write!(f, ",mtu={}", self.mtu)
    }
}
