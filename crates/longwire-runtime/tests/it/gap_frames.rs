//! Ports whose wires must be kept busy, as with gap frames.

use longwire_engine::{Bytes, Nanos};
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_runtime::LinkSetup;
use longwire_runtime::deciding::pipeline::run_to_end as network_run_to_end;
use longwire_runtime::pipeline::{PipelineConfig, run_on_one_thread};

use crate::common::delayed;
use crate::composed::ports::arrivals;
use crate::lanes::{Case, parts};

fn traffic() -> Vec<(Nanos, Vec<u8>)> {
    let frame = |number: u64| (Nanos::from_micros(1_000 + number * number), vec![0; 60]);
    (0..50).map(frame).collect()
}

/// A port whose wire must be kept busy. Records how far it was filled.
#[derive(Default)]
struct BusyWire {
    frames: Vec<Nanos>,
    flushed: usize,
    /// Times up to which the wire was filled.
    filled: Vec<Nanos>,
    synced: Nanos,
}

impl TxPort for BusyWire {
    fn push(&mut self, frame: TxFrame<'_>) -> PushResult {
        assert!(frame.release <= self.synced, "a frame before its clock");
        self.frames.push(frame.release);
        PushResult::Taken
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        let sent = self.frames.len() - self.flushed;
        self.flushed = self.frames.len();
        Ok(sent)
    }

    fn free_slots(&self) -> usize {
        64
    }

    fn unsent(&self) -> usize {
        0
    }

    fn needs_idle_fill(&self) -> bool {
        true
    }

    fn sync_clock(&mut self, now: Nanos) {
        self.synced = now;
    }

    fn fill(&mut self, now: Nanos) {
        assert_eq!(now, self.synced, "filled by another clock");
        self.filled.push(now);
    }
}

fn assert_busy(port: &BusyWire, frames: usize) {
    assert_eq!(port.frames.len(), frames);
    assert!(port.filled.len() >= 50, "{}", port.filled.len());
    assert!(port.filled.is_sorted());
}

#[test]
fn a_network_keeps_the_wires_of_its_ports_busy() {
    let case = Case::new("delay=5ms", "delay=5ms");
    let ports = [traffic(), Vec::new()];
    let ports = ports.map(|frames| (arrivals(frames, 1), BusyWire::default()));
    let (parts, settings) = (parts(&case).0, (1, Bytes(64 << 20)));
    let end = network_run_to_end(ports.into(), parts, settings, None).expect("it runs");
    assert_busy(&end.ports[0], 0);
    assert_busy(&end.ports[1], 50);
}

#[test]
fn a_link_keeps_the_wire_of_its_port_busy() {
    let setup = LinkSetup::new("ab", delayed("5ms"));
    let settings = PipelineConfig {
        seed: 1,
        memory_soft: 64 << 20,
        budget: Bytes(64 << 20),
        lend: false,
        cores: None,
    };
    let (source, wire) = (arrivals(traffic(), 1), BusyWire::default());
    let end = run_on_one_thread(source, wire, setup, settings, None).expect("it runs");
    assert_busy(&end.port, 50);
}
