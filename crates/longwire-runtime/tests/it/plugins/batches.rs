//! A plugin's decisions are independent of the division of packets into arrays.

use longwire_engine::{Bytes, DropReason, FrameContext, FrameMeta, Hook, Nanos, Packets};
use longwire_runtime::{CPlugin, Faults};
use longwire_units::random::{Purpose, Stream};

use crate::plugins::tools::{example, probe};

const FRAMES: usize = 6_400;

/// Frames of many lengths at irregular times.
struct Traffic(Vec<(u64, Vec<u8>)>);

impl Traffic {
    fn new() -> Traffic {
        let mut at = 0;
        let frame = |number: usize| {
            at += (number as u64 * 7_919) % 90_000;
            (at, vec![number as u8; 20 + number % 280])
        };
        Traffic((0..FRAMES).map(frame).collect())
    }

    fn frame_context(&self, number: usize) -> FrameContext<'_> {
        let (at, bytes) = &self.0[number];
        FrameContext {
            frame: FrameMeta::new(Nanos::from_nanos(*at), bytes.len() as u32),
            at: Nanos::from_nanos(*at),
            bytes,
            waiting: (Packets(0), Bytes(0)),
        }
    }

    fn batch<const N: usize>(&self, first: usize) -> [FrameContext<'_>; N] {
        std::array::from_fn(|index| self.frame_context(first + index))
    }
}

fn load(file: &str, hook: Hook, parameters: &str) -> (CPlugin, Faults) {
    let faults = Faults::new();
    let pairs = parameters.split(',').map(|pair| {
        let (key, value) = pair.split_once('=').unwrap();
        (key.to_owned(), value.to_owned())
    });
    let pairs: Vec<_> = pairs.collect();
    (CPlugin::load(file, hook, &pairs, &faults).unwrap(), faults)
}

fn losses<const N: usize>(file: &str, parameters: &str) -> Vec<Option<DropReason>> {
    let (mut plugin, faults) = load(file, Hook::Loss, parameters);
    let traffic = Traffic::new();
    let mut stream = Stream::new(1, 0, Purpose::MediumLoss);
    let firsts = (0..FRAMES).step_by(N);
    let lost = firsts.flat_map(|first| plugin.lose_batch::<N>(&traffic.batch(first), &mut stream));
    let lost = lost.collect();
    assert_eq!(faults.first(), None);
    lost
}

fn delays<const N: usize>(file: &str, parameters: &str) -> Vec<Nanos> {
    let (mut plugin, faults) = load(file, Hook::Delay, parameters);
    let traffic = Traffic::new();
    let mut stream = Stream::new(1, 0, Purpose::Delay);
    let firsts = (0..FRAMES).step_by(N);
    let drawn =
        firsts.flat_map(|first| plugin.delay_batch::<N>(&traffic.batch(first), &mut stream));
    let drawn = drawn.collect();
    assert_eq!(faults.first(), None);
    drawn
}

/// Returns departures. Service begins after the arrival and the previous departure; only
/// the first packet of an array states that.
fn departures<const N: usize>(file: &str, parameters: &str) -> Vec<Nanos> {
    let (mut plugin, faults) = load(file, Hook::Rate, parameters);
    let traffic = Traffic::new();
    let mut stream = Stream::new(1, 0, Purpose::Rate);
    let mut left: Vec<Nanos> = Vec::new();
    for first in (0..FRAMES).step_by(N) {
        let mut frames = traffic.batch::<N>(first);
        let before = left.last().copied().unwrap_or(Nanos::ZERO);
        frames[0].at = frames[0].at.max(before);
        let bits = frames
            .each_ref()
            .map(|frame| u64::from(frame.frame.len) * 8);
        left.extend(plugin.depart_batch::<N>(&frames, bits, &mut stream));
    }
    assert_eq!(faults.first(), None);
    left
}

fn rewritten<const N: usize>(file: &str) -> Vec<Vec<u8>> {
    let (mut plugin, faults) = load(file, Hook::Rewrite, "after=0");
    let mut stream = Stream::new(1, 0, Purpose::Rewrite);
    let mut frames: Vec<Vec<u8>> = Traffic::new()
        .0
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect();
    for batch in frames.as_chunks_mut::<N>().0 {
        let bytes = batch.each_mut().map(|bytes| bytes.as_mut_slice());
        plugin.rewrite_batch::<N>([Nanos::ZERO; N], bytes, &mut stream);
    }
    assert_eq!(faults.first(), None);
    frames
}

#[test]
fn arrays_do_not_show_in_losses() {
    for (file, parameters) in [
        ("data_loss.c", "offset=3,bytes=11,p=40%"),
        ("bursty_wireless.c", "good=20ms,bad=5ms,loss=40%"),
    ] {
        let file = example(file);
        let one = losses::<1>(&file, parameters);
        assert!(one.iter().any(Option::is_some) && one.iter().any(Option::is_none));
        assert_eq!(losses::<8>(&file, parameters), one, "{file}");
        assert_eq!(losses::<64>(&file, parameters), one, "{file}");
    }
}

#[test]
fn arrays_do_not_show_in_delays() {
    let file = example("bursty_wireless.c");
    let parameters = "good=20ms,bad=5ms,delay=1ms,retry=3ms";
    let one = delays::<1>(&file, parameters);
    assert!(one.iter().any(|delay| *delay != one[0]));
    assert_eq!(delays::<8>(&file, parameters), one);
    assert_eq!(delays::<64>(&file, parameters), one);
    let draws = delays::<1>(&probe(), "fault=draws");
    assert_eq!(delays::<64>(&probe(), "fault=draws"), draws);
}

#[test]
fn arrays_do_not_show_in_departures() {
    let file = example("tdm.c");
    let parameters = "rate=100mbit,period=1ms,slot=300us";
    let one = departures::<1>(&file, parameters);
    assert_eq!(departures::<8>(&file, parameters), one);
    assert_eq!(departures::<64>(&file, parameters), one);
}

#[test]
fn arrays_do_not_show_in_rewriting() {
    let one = rewritten::<1>(&probe());
    assert_ne!(one, rewritten_not_at_all());
    assert_eq!(rewritten::<8>(&probe()), one);
    assert_eq!(rewritten::<64>(&probe()), one);
}

fn rewritten_not_at_all() -> Vec<Vec<u8>> {
    Traffic::new()
        .0
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect()
}
