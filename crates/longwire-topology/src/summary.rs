//! Topology summaries.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use longwire_engine::{BitRate, LinkSpec, Nanos};
use longwire_packet::bridge::Switching;
use longwire_packet::classify::Order;
use longwire_runtime::OnPortLoss;
use longwire_units::count_of;
use serde::Serialize;

use super::plan::{CarrierPlan, HostPlan, LinkPlan, Topology, Unmatched};
use super::timeline::{Action, Event};

/// Approximate memory per frame beyond its bytes: descriptor and queue slot.
const FRAME_OVERHEAD: u64 = 64;

/// Frame length assumed for queues limited only in frames.
const FRAME_LEN: u64 = 1514;

/// Maximum number of events shown.
const EVENTS_SHOWN: usize = 20;

/// Maximum number of link kinds shown.
const KINDS_SHOWN: usize = 10;

/// A topology's key figures.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Ports: name and port to open.
    pub ports: Vec<(String, String)>,
    /// Ports whose carrier follows links: name and links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carriers: Vec<(String, Vec<String>)>,
    /// `bridge`, `pairs` or `static`.
    pub switching: &'static str,
    /// Number of named links.
    pub links: usize,
    /// Number of links whose directions share one queue and rate.
    pub shared: usize,
    /// Number of engine links: one per direction, or per shared link.
    pub directions: usize,
    /// Directions grouped by options, most frequent first.
    pub kinds: Vec<LinkKind>,
    /// Minimum and maximum rate in bit/s, among directions with a rate.
    pub rate: Option<(u64, u64)>,
    /// Minimum and maximum mean delay in nanoseconds.
    pub delay_ns: Option<(u64, u64)>,
    /// Memory in bytes if all queues are full and all rates saturated; `None` if unbounded.
    pub memory_max: Option<u64>,
    /// Number of paths.
    pub paths: usize,
    /// Number of rules.
    pub rules: usize,
    /// `first` or `specific`.
    pub order: &'static str,
    /// Handling of unmatched frames.
    pub unmatched: String,
    /// `end` or `continue`.
    pub on_port_loss: &'static str,
    /// Number of events replaced by `--scenario`.
    pub replaced: usize,
    /// The hosts, if the network is divided among several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostSummary>,
    /// First events in the timeline, one line per change or ramp.
    pub timeline: Vec<String>,
    /// Time of the last event in nanoseconds; `None` if the scenario never ends.
    pub timeline_end_ns: Option<u64>,
}

/// A host in a topology.
#[derive(Clone, Debug, Serialize)]
pub struct HostSummary {
    /// Name.
    pub name: String,
    /// Address at which other hosts reach this one.
    pub address: SocketAddr,
    /// Names of its ports.
    pub ports: Vec<String>,
    /// Number of directions decided by this host.
    pub directions: usize,
}

/// Directions with the same options.
#[derive(Clone, Debug, Serialize)]
pub struct LinkKind {
    /// Number of directions.
    pub directions: usize,
    /// Options as written, excluding defaults.
    pub options: Vec<(&'static str, String)>,
}

/// Returns the memory in bytes of a direction with a full queue and a saturated rate; `None` if
/// unbounded.
fn memory_of(spec: &LinkSpec) -> Option<u64> {
    let (rate, delay) = (spec.bit_rate(), spec.mean_delay());
    let limit = spec.queue_limit();
    let by_packets = limit
        .packets
        .map(|most| most.0.saturating_mul(FRAME_LEN + FRAME_OVERHEAD));
    // Minimum-size frames need the most memory per byte.
    let by_bytes = limit.bytes.map(|most| most.0.saturating_mul(2));
    let queue = match rate {
        Some(_) => by_packets.into_iter().chain(by_bytes).min(),
        None => Some(0),
    };
    // Without a rate, the number of frames in propagation is unbounded.
    let flying = match rate {
        _ if delay == Nanos::ZERO => 0,
        Some(rate) => rate.bytes_in(delay).0.saturating_mul(2),
        None => return None,
    };
    Some(queue?.saturating_add(flying))
}

/// Returns a port's name and the links that its carrier follows.
fn carrier(topology: &Topology, plan: &CarrierPlan) -> (String, Vec<String>) {
    let port = &topology.ports[usize::from(plan.port.0)];
    (port.name.clone(), plan.links.clone())
}

impl HostSummary {
    fn line(&self) -> String {
        let (ports, directions) = (self.ports.join(", "), self.directions as u64);
        let directions = count_of(directions, "direction");
        let HostSummary { name, address, .. } = self;
        format!("host       {name} ({address}): ports {ports}; decides {directions}")
    }
}

impl Summary {
    /// Summarizes a topology.
    pub fn of(topology: &Topology) -> Summary {
        let mut kinds = Vec::new();
        let (mut rates, mut delays) = (Vec::new(), Vec::new());
        let mut memory = Some(0_u64);
        for (options, directions) in counts(&topology.links) {
            rates.extend(options.bit_rate().map(BitRate::bits_per_sec));
            delays.push(options.mean_delay().as_nanos());
            memory = memory.and_then(|sum| {
                Some(sum.saturating_add(memory_of(options)?.saturating_mul(directions as u64)))
            });
            kinds.push(LinkKind {
                directions,
                options: options.given(),
            });
        }
        let range = |values: &[u64]| {
            let (least, most) = (values.iter().min()?, values.iter().max()?);
            Some((*least, *most))
        };
        let ports = topology.ports.iter();
        let carriers = topology.carriers.iter();
        let is_shared = |link: &&LinkPlan| link.down.is_none() && !link.is_one_way;
        Summary {
            ports: ports
                .map(|port| (port.name.clone(), port.opens.clone()))
                .collect(),
            carriers: carriers.map(|plan| carrier(topology, plan)).collect(),
            switching: match topology.bridge.switching {
                Switching::Bridge => "bridge",
                Switching::Pairs(_) => "pairs",
                Switching::Static => "static",
            },
            links: topology.links.len(),
            shared: topology.links.iter().filter(is_shared).count(),
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

    /// Formats the summary, one line per entry.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.push_ports(&mut lines);
        let shared = match self.shared {
            0 => String::new(),
            shared => format!(", {shared} shared by both directions"),
        };
        let directions = count_of(self.directions as u64, "direction");
        let links = self.links;
        lines.push(format!("links      {links}{shared}; {directions} emulated"));
        self.push_kinds(&mut lines);
        if let Some((least, most)) = self.rate {
            let rate = |bits| {
                BitRate::from_bits_per_sec(bits).map_or(String::new(), |rate| rate.to_string())
            };
            lines.push(format!("rates      {} to {}", rate(least), rate(most)));
        }
        if let Some((least, most)) = self.delay_ns {
            let [least, most] = [least, most].map(Nanos::from_nanos);
            lines.push(format!("delays     {least} to {most} on average"));
        }
        lines.push(match self.memory_max {
            Some(bytes) => format!(
                "memory     {} MiB at most, with all queues full",
                bytes.div_ceil(1 << 20)
            ),
            None => "memory     unbounded: a link has a delay but no rate, or a queue has no limit"
                .to_owned(),
        });
        let order = match self.order {
            "first" => "first",
            _ => "most specific",
        };
        lines.push(format!(
            "rules      {}, the {order} match applies; unmatched frames: {}",
            self.rules, self.unmatched
        ));
        if self.on_port_loss == OnPortLoss::Continue.name() {
            lines.push("port loss  the run continues without the lost port".to_owned());
        }
        lines.extend(self.hosts.iter().map(HostSummary::line));
        if self.paths > 0 {
            lines.push(format!("paths      {}", self.paths));
        }
        if self.replaced > 0 {
            let events = count_of(self.replaced as u64, "event");
            lines.push(format!(
                "scenario   from a separate file, replacing {events} here"
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

    /// Adds the ports and the links that their carriers follow.
    fn push_ports(&self, lines: &mut Vec<String>) {
        let ports = self.ports.iter();
        let ports = ports.map(|(name, opens)| format!("{name} ({opens})"));
        let ports = ports.collect::<Vec<_>>().join(", ");
        lines.push(format!("ports      {}: {ports}", self.switching));
        for (port, links) in &self.carriers {
            let links = links.join(", ");
            lines.push(format!(
                "carrier    {port}: down while all of these links are off: {links}"
            ));
        }
    }

    fn push_kinds(&self, lines: &mut Vec<String>) {
        for kind in self.kinds.iter().take(KINDS_SHOWN) {
            let mut options = written(&kind.options);
            if options.is_empty() {
                options = "no options".to_owned();
            }
            lines.push(format!("  {:>8} × {options}", kind.directions));
        }
        if self.kinds.len() > KINDS_SHOWN {
            let others = count_of((self.kinds.len() - KINDS_SHOWN) as u64, "other kind");
            lines.push(format!("           and {others}"));
        }
    }
}

/// Returns the hosts with the number of directions that each decides.
fn hosts(topology: &Topology) -> Vec<HostSummary> {
    let Some(cluster) = &topology.cluster else {
        return Vec::new();
    };
    let summary = |(index, host): (usize, &HostPlan)| {
        let ports = host.ports.iter();
        let ports = ports.map(|port| topology.ports[usize::from(port.0)].name.clone());
        let deciders = topology.links.iter().zip(&cluster.deciders);
        let directions = deciders.flat_map(|(link, directions)| match link.down {
            Some(_) => &directions[..],
            None => &directions[..1],
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

/// Counts directions by options, most frequent first.
fn counts(links: &[LinkPlan]) -> Vec<(&LinkSpec, usize)> {
    let mut counts: HashMap<*const LinkSpec, (&LinkSpec, usize, usize)> = HashMap::new();
    let directions = links
        .iter()
        .flat_map(|link| std::iter::once(&link.up).chain(link.down.as_ref()));
    for (place, options) in directions.enumerate() {
        // Equal options share an allocation, so compare addresses.
        let entry = counts.entry(Arc::as_ptr(options));
        entry.or_insert((options, place, 0)).2 += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_by_key(|(_, place, count)| (usize::MAX - count, *place));
    let counts = counts.into_iter();
    counts.map(|(options, _, count)| (options, count)).collect()
}

/// Formats the first [`EVENTS_SHOWN`] events and the number of remaining ones.
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

/// Formats an event, one line per change or ramp.
fn event_lines(event: &Event) -> Vec<String> {
    let again = match (event.every, event.times) {
        (None, _) => String::new(),
        (Some(every), None) => format!(", repeats every {every}"),
        (Some(every), Some(times)) => format!(", every {every}, {times} times"),
    };
    let ramps = event.ramps.iter().map(|ramp| {
        let [from, to] = &ramp.ends;
        format!(
            "{}: ramp {} from {from} to {to} over {} in {} steps",
            ramp.pattern, ramp.option, ramp.time, ramp.steps
        )
    });
    let changes = event.actions.iter().map(in_words).chain(ramps);
    let lines = changes.map(|change| format!("{}: {change}{again}", event.time));
    lines.collect()
}

/// Formats options: `rate 1mbit, delay 5ms`.
fn written(options: &[(&str, String)]) -> String {
    let options = options.iter().map(|(name, text)| format!("{name} {text}"));
    options.collect::<Vec<_>>().join(", ")
}

/// Formats an action.
pub fn in_words(action: &Action) -> String {
    match action {
        Action::Set {
            pattern, options, ..
        } => {
            format!("{pattern}: set {}", written(&options.given()))
        }
        Action::State { pattern, state } => format!("{pattern} is {}", state.name()),
        Action::Move { class, to, outage } => {
            let outage = match *outage {
                Nanos::ZERO => String::new(),
                outage => format!(", after an outage of {outage}"),
            };
            format!("frames of {class} take {to}{outage}")
        }
    }
}
