//! Largest flows of a direction, counted while a client requests them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use longwire_engine::{LinkId, Nanos};
use longwire_network::{Controller, FlowCount};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Idle time after which counting ends.
const IDLE_AFTER: Duration = Duration::from_secs(5);

/// Maximum flows in a response.
const FLOWS_MAX: usize = 20;

/// Largest flows of a direction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Flows {
    /// Start of counting, in seconds since the start of the run.
    pub since_s: f64,
    /// Time since the start of the run, in seconds.
    pub elapsed_s: f64,
    /// Delivered frames of all flows.
    pub packets: u64,
    /// At most 20 flows, sorted by frames in descending order.
    pub flows: Vec<FlowRow>,
}

/// A flow.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FlowRow {
    /// Protocol, source and destination, such as `tcp 10.0.0.1:40000 > 10.0.0.2:5201`; `other` for
    /// all frames that are not IP.
    pub flow: String,
    /// Delivered frames.
    pub packets: u64,
    /// Delivered bytes.
    pub bytes: u64,
    /// Rate since the previous response, in bit/s.
    pub bits_per_s: f64,
    /// Fraction of all delivered frames.
    pub share: f64,
    /// Maximum number of frames of other flows included in `packets`.
    pub error_packets: u64,
}

/// Counts the flows of one direction.
#[derive(Debug, Default)]
pub struct FlowReader(Option<Reading>);

#[derive(Debug)]
struct Reading {
    link: LinkId,
    since: Nanos,
    asked: Instant,
    at: Nanos,
    bytes: HashMap<String, u64>,
}

impl FlowReader {
    /// Returns whether flows are being counted.
    pub fn is_read(&self) -> bool {
        self.0.is_some()
    }

    /// Stops counting once clients are idle.
    pub fn refresh(&mut self, controller: &Controller) {
        let idle = |reading: &Reading| reading.asked.elapsed() > IDLE_AFTER;
        if self.0.as_ref().is_some_and(idle) {
            self.0 = None;
            controller.watch_flows(None);
        }
    }

    /// Returns the flows of a direction if it exists. The first call starts counting; a call for
    /// another direction switches to it.
    pub fn read(&mut self, name: &str, controller: &Controller) -> Option<Flows> {
        let link = controller.direction(name)?.id;
        let now = controller.elapsed();
        if self.0.as_ref().is_none_or(|reading| reading.link != link) {
            controller.watch_flows(Some(link));
        }
        let (packets, counts) = controller.flows();
        let reading = self.0.take().filter(|reading| reading.link == link);
        let mut reading = reading.unwrap_or_else(|| Reading {
            link,
            since: now,
            asked: Instant::now(),
            at: now,
            bytes: HashMap::new(),
        });
        let seconds = now.saturating_sub(reading.at).as_secs_f64();
        let rows = counts.iter().take(FLOWS_MAX);
        let flows = rows
            .map(|count| reading.row(count, packets, seconds))
            .collect();
        reading.bytes = counts
            .iter()
            .map(|count| (name_of(count), count.bytes))
            .collect();
        (reading.at, reading.asked) = (now, Instant::now());
        let since_s = reading.since.as_secs_f64();
        self.0 = Some(reading);
        Some(Flows {
            since_s,
            elapsed_s: now.as_secs_f64(),
            packets,
            flows,
        })
    }
}

impl Reading {
    fn row(&self, count: &FlowCount, all: u64, seconds: f64) -> FlowRow {
        let flow = name_of(count);
        let before = self.bytes.get(&flow).copied().unwrap_or(0);
        let grown = count.bytes.saturating_sub(before);
        FlowRow {
            packets: count.packets,
            bytes: count.bytes,
            bits_per_s: if seconds > 0.0 {
                (8 * grown) as f64 / seconds
            } else {
                0.0
            },
            share: count.packets as f64 / all.max(1) as f64,
            error_packets: count.error,
            flow,
        }
    }
}

fn name_of(count: &FlowCount) -> String {
    count
        .flow
        .map_or_else(|| "other".to_owned(), |flow| flow.to_string())
}
