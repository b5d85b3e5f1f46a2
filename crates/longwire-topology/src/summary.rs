//! A topology in numbers and in words.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use longwire_engine::{BitRate, LinkSpec, Nanos};
use longwire_packet::bridge::Switching;
use longwire_packet::classify::Order;
use longwire_runtime::OnPortLoss;
use longwire_units::number_of;
use serde::Serialize;

use super::plan::{CarrierPlan, HostPlan, LinkPlan, Topology, Unmatched};
use super::timeline::{Action, Event};

/// The memory of a frame in addition to its bytes, roughly: its descriptor and its
/// place in a queue.
const FRAME_OVERHEAD: u64 = 64;

/// The length of a frame where a queue is limited in frames only.
const FRAME_LEN: u64 = 1514;

/// The most events of the timeline that are shown.
const EVENTS_SHOWN: usize = 20;

/// The most kinds of links that are shown.
const KINDS_SHOWN: usize = 10;

/// A topology in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Ports: name, and what is opened.
    pub ports: Vec<(String, String)>,
    /// Ports whose carriers follow links: name, and the links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carriers: Vec<(String, Vec<String>)>,
    /// `bridge`, `pairs` or `static`.
    pub switching: &'static str,
    /// Named links.
    pub links: usize,
    /// Those whose directions share one queue and rate.
    pub shared: usize,
    /// Links of the engine: one for each direction that is emulated apart.
    pub directions: usize,
    /// Directions of links by their options, most frequent first.
    pub kinds: Vec<LinkKind>,
    /// The lowest and the highest rate in bits per second, of those with one.
    pub rate: Option<(u64, u64)>,
    /// The shortest and the longest mean delay, in nanoseconds.
    pub delay_ns: Option<(u64, u64)>,
    /// Bytes that all links hold when all queues are full and all rates used;
    /// `None` when something has no limit.
    pub memory_max: Option<u64>,
    /// Paths of several links.
    pub paths: usize,
    /// Rules, and which of them counts.
    pub rules: usize,
    /// `first` or `specific`.
    pub order: &'static str,
    /// The handling of frames that no rule matches.
    pub unmatched: String,
    /// `end` or `continue`: what happens when a port goes away.
    pub on_port_loss: &'static str,
    /// Events of the file that do not happen, for `--scenario` has others.
    pub replaced: usize,
    /// The machines that run it together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostSummary>,
    /// The first events of the timeline, in words: a line for each change and
    /// each ramp.
    pub timeline: Vec<String>,
    /// The time of the last event; `None` without an end.
    pub timeline_end_ns: Option<u64>,
}

/// A machine that runs a part of a topology.
#[derive(Clone, Debug, Serialize)]
pub struct HostSummary {
    /// Its name.
    pub name: String,
    /// Where the other hosts reach it.
    pub address: SocketAddr,
    /// The names of its ports.
    pub ports: Vec<String>,
    /// The number of directions of links that it decides about.
    pub directions: usize,
}

/// Links with the same options.
#[derive(Clone, Debug, Serialize)]
pub struct LinkKind {
    /// The number of directions.
    pub directions: usize,
    /// The options as they would be written, without what is left out.
    pub options: Vec<(&'static str, String)>,
}

/// Properties of one set of options.
struct Facts {
    rate: Option<BitRate>,
    delay: Nanos,
    memory: Option<u64>,
}

impl Facts {
    fn of(spec: &LinkSpec) -> Facts {
        let (rate, delay) = (spec.bit_rate(), spec.mean_delay());
        let limit = spec.queue_limit();
        let by_packets = limit
            .packets
            .map(|most| most.0.saturating_mul(FRAME_LEN + FRAME_OVERHEAD));
        // The smallest frames take the most memory in addition to their bytes.
        let by_bytes = limit.bytes.map(|most| most.0.saturating_mul(2));
        let queue = by_packets.into_iter().chain(by_bytes).min();
        // Without a rate nothing bounds what is on its way for a delay.
        let flying = match rate {
            _ if delay == Nanos::ZERO => Some(0),
            Some(rate) => Some(rate.bytes_in(delay).0.saturating_mul(2)),
            None => None,
        };
        let queue = if rate.is_none() { Some(0) } else { queue };
        let memory = queue
            .zip(flying)
            .map(|(queue, flying)| queue.saturating_add(flying));
        Facts {
            rate,
            delay,
            memory,
        }
    }
}

/// Returns the name of a port and the links that its carrier follows.
fn carrier(topology: &Topology, plan: &CarrierPlan) -> (String, Vec<String>) {
    let port = &topology.ports[usize::from(plan.port.0)];
    (port.name.clone(), plan.links.clone())
}

impl HostSummary {
    fn line(&self) -> String {
        format!(
            "host       {} ({}): ports {}; decides {}",
            self.name,
            self.address,
            self.ports.join(", "),
            number_of(self.directions as u64, "direction")
        )
    }
}

impl Summary {
    /// Of a topology.
    pub fn of(topology: &Topology) -> Summary {
        let counts = counts(&topology.links);
        let mut kinds = Vec::new();
        let (mut rates, mut delays) = (Vec::new(), Vec::new());
        let mut memory = Some(0_u64);
        for (options, directions) in counts {
            let facts = Facts::of(options);
            rates.extend(facts.rate.map(BitRate::bits_per_sec));
            delays.push(facts.delay.as_nanos());
            let of_all = facts
                .memory
                .map(|each| each.saturating_mul(directions as u64));
            memory = memory
                .zip(of_all)
                .map(|(sum, more)| sum.saturating_add(more));
            let options = options.given();
            kinds.push(LinkKind {
                directions,
                options,
            });
        }
        let range = |values: &[u64]| {
            let (least, most) = (values.iter().min()?, values.iter().max()?);
            Some((*least, *most))
        };
        Summary {
            ports: topology
                .ports
                .iter()
                .map(|port| (port.name.clone(), port.opens.clone()))
                .collect(),
            carriers: topology
                .carriers
                .iter()
                .map(|plan| carrier(topology, plan))
                .collect(),
            switching: match topology.bridge.switching {
                Switching::Bridge => "bridge",
                Switching::Pairs(_) => "pairs",
                Switching::Static => "static",
            },
            links: topology.links.len(),
            shared: topology
                .links
                .iter()
                .filter(|link| link.down.is_none())
                .count(),
            directions: topology.engine_links(),
            kinds,
            rate: range(&rates),
            delay_ns: range(&delays),
            memory_max: memory,
            paths: topology.paths.len(),
            rules: topology.rules.len(),
            order: match topology.order {
                Order::First => "first",
                Order::MostSpecific => "specific",
            },
            unmatched: match topology.unmatched {
                Unmatched::Pass => "pass".to_owned(),
                Unmatched::Drop => "drop".to_owned(),
                Unmatched::Link(link) => format!("link:{}", topology.links[link as usize].name),
            },
            on_port_loss: topology.on_port_loss.name(),
            replaced: topology.replaced,
            hosts: hosts(topology),
            timeline: timeline(&topology.timeline.events),
            timeline_end_ns: topology.timeline.end().map(Nanos::as_nanos),
        }
    }

    /// In words, a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.push_ports(&mut lines);
        let shared = match self.shared {
            0 => String::new(),
            shared => format!(", {shared} of them shared by both directions"),
        };
        lines.push(format!(
            "links      {}{shared}; {} emulated apart",
            self.links,
            number_of(self.directions as u64, "direction")
        ));
        self.push_kinds(&mut lines);
        if let Some((least, most)) = self.rate {
            let rate = |bits| {
                BitRate::from_bits_per_sec(bits).map_or(String::new(), |rate| rate.to_string())
            };
            lines.push(format!("rates      {} to {}", rate(least), rate(most)));
        }
        if let Some((least, most)) = self.delay_ns {
            let time = Nanos::from_nanos;
            lines.push(format!(
                "delays     {} to {} on average",
                time(least),
                time(most)
            ));
        }
        lines.push(match self.memory_max {
            Some(bytes) => format!("memory     {} MiB at worst, with all queues full", bytes.div_ceil(1 << 20)),
            None => "memory     without bound: a link without a rate has a delay, or a queue has no limit".to_owned(),
        });
        lines.push(format!(
            "rules      {}, {}; other frames: {}",
            self.rules,
            match self.order {
                "first" => "the first of the file counts",
                _ => "the most specific counts",
            },
            self.unmatched
        ));
        if self.on_port_loss == OnPortLoss::Continue.name() {
            lines.push("port loss  the run goes on without a port that goes away".to_owned());
        }
        lines.extend(self.hosts.iter().map(HostSummary::line));
        if self.paths > 0 {
            lines.push(format!("paths      {}", self.paths));
        }
        if self.replaced > 0 {
            lines.push(format!(
                "scenario   from its own file, in place of {} here",
                number_of(self.replaced as u64, "event")
            ));
        }
        if !self.timeline.is_empty() {
            let end = self.timeline_end_ns.map(Nanos::from_nanos);
            lines.push(match end {
                Some(end) => format!("timeline   until {end}"),
                None => "timeline   without end".to_owned(),
            });
            lines.extend(self.timeline.iter().map(|line| format!("  {line}")));
        }
        lines
    }

    /// Adds the ports, and the links that their carriers follow.
    fn push_ports(&self, lines: &mut Vec<String>) {
        let ports = self
            .ports
            .iter()
            .map(|(name, opens)| format!("{name} ({opens})"));
        let ports: Vec<String> = ports.collect();
        let ports = ports.join(", ");
        lines.push(format!("ports      {}: {ports}", self.switching));
        for (port, links) in &self.carriers {
            let links = links.join(", ");
            lines.push(format!(
                "carrier    {port}: lost while all are down: {links}"
            ));
        }
    }

    fn push_kinds(&self, lines: &mut Vec<String>) {
        for kind in self.kinds.iter().take(KINDS_SHOWN) {
            let options = kind
                .options
                .iter()
                .map(|(name, text)| format!("{name} {text}"));
            let options: Vec<String> = options.collect();
            let options = if options.is_empty() {
                "no options".to_owned()
            } else {
                options.join(", ")
            };
            lines.push(format!("  {:>8} × {options}", kind.directions));
        }
        if self.kinds.len() > KINDS_SHOWN {
            lines.push(format!(
                "           and {} other kinds",
                self.kinds.len() - KINDS_SHOWN
            ));
        }
    }
}

/// The machines, with the links that each decides about.
fn hosts(topology: &Topology) -> Vec<HostSummary> {
    let Some(cluster) = &topology.cluster else {
        return Vec::new();
    };
    let summary = |(index, host): (usize, &HostPlan)| {
        let ports = host.ports.iter();
        let ports = ports.map(|port| topology.ports[usize::from(port.0)].name.clone());
        let deciders = topology.links.iter().zip(&cluster.deciders);
        let directions = deciders.flat_map(|(link, ways)| match link.down {
            Some(_) => &ways[..],
            None => &ways[..1],
        });
        HostSummary {
            name: host.name.clone(),
            address: host.address,
            ports: ports.collect(),
            directions: directions
                .filter(|decider| **decider == Some(index))
                .count(),
        }
    };
    cluster.hosts.iter().enumerate().map(summary).collect()
}

/// The number of directions of links by their options, most frequent first.
fn counts(links: &[LinkPlan]) -> Vec<(&LinkSpec, usize)> {
    let mut counts: HashMap<*const LinkSpec, (&LinkSpec, usize, usize)> = HashMap::new();
    let directions = links.iter().flat_map(|link| {
        let down = link.down.as_ref();
        std::iter::once(&link.up).chain(down)
    });
    for (place, options) in directions.enumerate() {
        // Options that are alike were kept once.
        let entry = counts.entry(Arc::as_ptr(options));
        entry.or_insert((options, place, 0)).2 += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_by_key(|(_, place, count)| (usize::MAX - count, *place));
    counts
        .into_iter()
        .map(|(options, _, count)| (options, count))
        .collect()
}

/// Events in words.
fn timeline(events: &[Event]) -> Vec<String> {
    let shown = events.iter().take(EVENTS_SHOWN);
    let mut lines: Vec<String> = shown.flat_map(event_lines).collect();
    match events.len().saturating_sub(EVENTS_SHOWN) {
        0 => {}
        1 => lines.push("and 1 more event".to_owned()),
        more => lines.push(format!("and {more} more events")),
    }
    lines
}

/// An event in words: a line for each change and each ramp.
fn event_lines(event: &Event) -> Vec<String> {
    let again = match (event.every, event.times) {
        (None, _) => String::new(),
        (Some(every), None) => format!(", again every {every}"),
        (Some(every), Some(times)) => format!(", every {every}, {times} times in all"),
    };
    let ramps = event.ramps.iter().map(|ramp| {
        let [from, to] = &ramp.ends;
        format!(
            "{} changes {} from {from} to {to} within {}, in {} steps",
            ramp.pattern, ramp.option, ramp.time, ramp.steps
        )
    });
    let changes = event.actions.iter().map(in_words).chain(ramps);
    let lines = changes.map(|change| format!("{}: {change}{again}", event.time));
    lines.collect()
}

/// An action in words.
pub fn in_words(action: &Action) -> String {
    match action {
        Action::Set {
            pattern, options, ..
        } => {
            let options = options.given().into_iter();
            let options: Vec<String> = options
                .map(|(name, text)| format!("{name} {text}"))
                .collect();
            format!("{pattern} gets {}", options.join(", "))
        }
        Action::State { pattern, state } => format!("{pattern} is {}", state.name()),
        Action::Move { class, to, outage } => {
            let outage = match *outage {
                Nanos::ZERO => String::new(),
                outage => format!(", after {outage} without any"),
            };
            format!("frames of {class} take {to}{outage}")
        }
    }
}
