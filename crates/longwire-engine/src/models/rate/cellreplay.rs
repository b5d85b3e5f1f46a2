//! Short and long bursts on a cellular link, modelled like CellReplay.

use super::mahimahi::{OPPORTUNITY, OVERHEAD, Opportunities, counted, sizes};
use super::{Rate, RateModel};
use crate::models::prelude::*;
use crate::trace::schedule::ScheduleReader;
use crate::trace::trains::{Trains, TrainsReader, interpolated};

pub(super) const ENTRY: Entry<Rate> = Entry::new(
    "cellreplay",
    "packets after an idle period follow recorded packet trains, later ones the recorded \
     opportunities of a loaded link (CellReplay: Sentosa et al., NSDI 2025)",
    &[
        Param::new(
            "trains",
            Unit::File("0 20 0 1 3\n100 24 0 2 2\n250 20 0 0 5\n"),
        )
        .help("light trace: one train per line, with time, base delay and opportunities in ms"),
        Param::new("opportunities", Unit::File("1\n1\n3\n10\n"))
            .help("heavy trace: one opportunity per line in ms, like mahimahi"),
        Param::with_default("pause", Unit::Time, "0")
            .help("idle time after which the next packet starts a train"),
        BASE_DELAY,
        OPPORTUNITY,
        OVERHEAD,
    ],
    build,
);

const BASE_DELAY: Param = Param::with_default(
    "base-delay",
    Unit::Choice(&["separate", "included"]),
    "separate",
)
.help(
    "included: add the train's base delay to each packet, as CellReplay does; separate: leave the \
     delay to the delay model",
);

const NANOS_PER_MILLI: u64 = 1_000_000;

fn build(arguments: &Arguments<'_>) -> Result<Rate, SpecError> {
    let mut reader = TrainsReader::default();
    arguments.lines("trains", &mut |_, line| reader.line(line))?;
    let trains = reader.finish();
    let trains = trains.map_err(|message| arguments.file_error("trains", message))?;
    let mut reader = ScheduleReader::default();
    arguments.lines("opportunities", &mut |_, line| reader.line(line))?;
    let schedule = reader.finish();
    let schedule = schedule.map_err(|message| arguments.file_error("opportunities", message))?;
    let pause: Nanos = arguments.required("pause")?;
    let (size, overhead) = sizes(arguments)?;
    let model = CellReplay {
        light: Light::new(trains, pause, size),
        heavy: Opportunities::new(schedule, size, true),
        overhead,
        epoch: Nanos::ZERO,
        released: Nanos::ZERO,
        heavy_until: None,
        delivers: arguments.choice(BASE_DELAY.name)? == 1,
        delivered: Nanos::ZERO,
    };
    Ok(Rate::Model(Described::new(
        arguments.text(),
        Box::new(model),
    )))
}

/// Packets pass through two queues. The light queue assigns packets to opportunities in a train.
/// The heavy queue follows after the base delay; packets with an opportunity bypass it while it is
/// empty. CellReplay applies the base delay between the queues; this model subtracts it from
/// departures, so that delayed frames take no queue space, and adds it again if it is part of the
/// model.
#[derive(Clone, Debug)]
struct CellReplay {
    light: Light,
    heavy: Opportunities,
    overhead: i64,
    epoch: Nanos,
    /// Time at which the last packet completed the base delay after the light queue.
    released: Nanos,
    /// Time at which the last packet leaves the heavy queue.
    heavy_until: Option<Nanos>,
    /// Whether the base delay is part of the model.
    delivers: bool,
    /// Time at which the last packet leaves the model, including the base delay.
    delivered: Nanos,
}

impl RateModel for CellReplay {
    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch;
        self.heavy.start(epoch);
    }

    fn serve(&mut self, frame: &FrameContext<'_>, wire_bits: u64, _stream: &mut Stream) -> Nanos {
        let bytes = counted(wire_bits, self.overhead);
        let arrival = frame.frame.arrival;
        let (waits, mut in_train) = self.light.place(arrival.saturating_sub(self.epoch), bytes);
        let base_delay = self.light.base_delay;
        let mut released = arrival.saturating_add(waits).saturating_add(base_delay);
        if released < self.released {
            released = self.released;
            in_train = false;
        }
        self.released = released;
        let mut left = released;
        if !in_train || self.heavy_until.is_some_and(|until| until >= released) {
            left = self.heavy.deliver(released, released, bytes);
            self.heavy_until = Some(left);
        }
        self.delivered = left;
        match left {
            Nanos::MAX => Nanos::MAX,
            left => left.saturating_sub(base_delay),
        }
    }

    fn passed_delay(&self) -> Nanos {
        if self.delivers {
            self.delivered
        } else {
            Nanos::ZERO
        }
    }

    /// Returns the mean rate under load.
    fn mean(&self) -> Option<BitRate> {
        self.heavy.mean()
    }
}

/// The queue served by packet trains. Times are relative to the epoch.
#[derive(Clone, Debug)]
struct Light {
    trains: Trains,
    pause: u64,
    /// Bytes per opportunity.
    size: u64,
    /// Start of the current period of the trains.
    lap: u64,
    /// Current train: index, arrival of its first packet, next opportunity and its remaining bytes.
    index: usize,
    begun: Option<u64>,
    place: usize,
    left: u64,
    base_delay: Nanos,
    /// Last departure, excluding the base delay.
    last: u64,
}

impl Light {
    fn new(trains: Trains, pause: Nanos, size: u64) -> Light {
        Light {
            trains,
            pause: pause.as_nanos(),
            size,
            lap: 0,
            index: 0,
            begun: None,
            place: 0,
            left: 0,
            base_delay: Nanos::ZERO,
            last: 0,
        }
    }

    /// Returns the waiting time of a packet that arrives at `at`, and whether its train has an
    /// opportunity for it.
    fn place(&mut self, at: Nanos, bytes: u64) -> (Nanos, bool) {
        // A flow-queueing discipline may dequeue packets out of arrival order.
        let at = at.as_nanos().max(self.begun.unwrap_or(0));
        let begun = match self.begun {
            Some(begun) if at <= self.last.saturating_add(self.pause) => begun,
            _ => {
                self.begin(at, bytes);
                return (Nanos::ZERO, true);
            }
        };
        let opportunities = self.trains.opportunities(self.index);
        let passed = at - begun;
        let instant = |place: usize| u64::from(opportunities[place]) * NANOS_PER_MILLI;
        while self.place < opportunities.len() && passed > instant(self.place) {
            self.place += 1;
            self.left = self.size;
        }
        if self.left < bytes {
            self.place += 1;
            self.left = self.size;
        }
        self.left = self.left.saturating_sub(bytes);
        let (wait, in_train) = if self.place < opportunities.len() {
            (instant(self.place) - passed, true)
        } else {
            // After the last opportunity, packets wait for the train's length, or for the base
            // delay if that is longer. The caller adds the base delay.
            let length = instant(opportunities.len() - 1);
            (length.saturating_sub(self.base_delay.as_nanos()), false)
        };
        self.last = at.saturating_add(wait);
        (Nanos::from_nanos(wait), in_train)
    }

    /// Starts the train for time `at` with a packet.
    fn begin(&mut self, at: u64, bytes: u64) {
        let length = self.trains.length().as_nanos();
        let laps = (at - self.lap) / length;
        if laps > 0 {
            self.lap += laps * length;
            self.index = 0;
        }
        let milli = ((at - self.lap) / NANOS_PER_MILLI) as u32;
        self.index = self.trains.find(self.index, milli);
        if let Some((from, to)) = self.trains.pair(self.index) {
            let delay = interpolated(from, to, milli.max(from.time));
            self.base_delay = Nanos::from_millis(u64::from(delay));
        }
        self.begun = Some(at);
        self.place = 0;
        self.left = self.size.saturating_sub(bytes);
        self.last = at;
    }
}
