//! A whole link with gap frames: frames are on the wire at the engine's departure time, to the byte
//! time.

use crate::composed::ports::arrivals;
use crate::lanes::{Case, parts};
use longwire_engine::{
    BitRate, Bytes, FrameMeta, Link, LinkConfig, LinkId, Nanos, Verdict, models,
};
use longwire_io::port::gap::GapTx;
use longwire_io::{PortError, PushResult, TxFrame, TxPort};
use longwire_runtime::LinkSetup;
use longwire_runtime::deciding::pipeline::run_to_end as network_run_to_end;
use longwire_runtime::pipeline::{PipelineConfig, run_to_end};
use longwire_testbed::support::gap_wire::{Card, spacing_error};
use longwire_units::random::Stream;

/// Returns bursts and pauses with frames of all lengths.
fn traffic(count: u64) -> Vec<(Nanos, Vec<u8>)> {
    let mut stream = Stream::of_seed(7);
    let mut at = 1_000_000;
    let frame = |number: u64| {
        at += [0, 700, 20_000][stream.up_to(2) as usize];
        let len = 60 + stream.up_to(1454) as usize;
        let mut bytes = vec![number as u8; len];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        (Nanos::from_nanos(at), bytes)
    };
    (0..count).map(frame).collect()
}

fn config(rate: &str, delay: &str) -> LinkConfig {
    LinkConfig {
        rate: models::RATE.parse(rate).unwrap(),
        framing: models::FRAMING.parse("ethernet").unwrap(),
        loss: vec![models::LOSS.parse("5%").unwrap()],
        delay: models::DELAY.parse(delay).unwrap(),
        queue: Some(models::QUEUE.parse("unlimited").unwrap()),
        ..LinkConfig::default()
    }
}

/// Returns the frames that the engine delivers, with their releases.
fn decided(frames: &[(Nanos, Vec<u8>)], config: LinkConfig) -> Vec<(Nanos, Vec<u8>)> {
    let mut link = Link::new(config, 1, LinkId(0));
    let decide = |(arrival, bytes): &(Nanos, Vec<u8>)| {
        let len = bytes.len() as u32;
        let frame = FrameMeta::new(*arrival, len);
        match link.offer(frame, bytes) {
            Verdict::Deliver(delivery) => Some((delivery.release, bytes.clone())),
            _ => None,
        }
    };
    frames.iter().filter_map(decide).collect()
}

#[test]
fn a_links_frames_are_on_the_wire_when_the_engine_said() {
    let wire_rate = BitRate::from_bits_per_sec(10_000_000_000).unwrap();
    for delay in ["50us", "uniform:10us,60us"] {
        let frames = traffic(3_000);
        let expected = decided(&frames, config("1gbit", delay));
        let source = arrivals(frames, usize::MAX);
        let sink = GapTx::new(Card::default(), "mem".to_owned(), wire_rate);
        let setup = LinkSetup::new("ab", config("1gbit", delay));
        let settings = PipelineConfig {
            seed: 1,
            memory_soft: 64 << 20,
            budget: Bytes(256 << 20),
            lend: false,
            cores: None,
        };
        let end = run_to_end(source, sink, setup, settings).unwrap();
        let tally = end.port.tally();
        let wire = end.port.into_line().wire;
        assert!(expected.len() > 2_500);
        assert_eq!(wire.frames.len(), expected.len(), "{delay}");
        for (seen, (_, bytes)) in wire.frames.iter().zip(&expected) {
            assert_eq!(&seen.bytes, bytes);
        }
        assert_eq!((wire.bad, wire.malformed, wire.idle), (tally.fillers, 0, 0));
        let releases: Vec<Nanos> = expected.iter().map(|(release, _)| *release).collect();
        let error = spacing_error(&wire.frames, &releases, wire_rate);
        // Ten times the link's rate leaves room for fillers between any two frames. Jitter may
        // release several at once, which the wire serializes.
        if delay.starts_with("uniform") {
            assert!(tally.waited > 0);
        } else {
            assert!(error < 1.0, "{error} byte times");
            assert_eq!((tally.waited, tally.moved), (0, 0));
        }
        assert_eq!(tally.late, 0);
    }
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

#[test]
fn a_network_keeps_the_wires_of_its_ports_busy() {
    let case = Case::new("delay=5ms", "delay=5ms");
    let source = |frames| arrivals(frames, 1);
    let frames = traffic(50);
    let ports = vec![
        (source(frames.clone()), BusyWire::default()),
        (source(Vec::new()), BusyWire::default()),
    ];
    let end =
        network_run_to_end(ports, parts(&case).0, (1, Bytes(64 << 20)), None).expect("it runs");
    let [idle, wire] = [&end.ports[0], &end.ports[1]];
    assert_eq!(wire.frames.len(), frames.len());
    for port in [idle, wire] {
        assert!(port.filled.len() >= frames.len(), "{}", port.filled.len());
        assert!(port.filled.is_sorted());
    }
}
