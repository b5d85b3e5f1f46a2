//! A plugin's decisions do not depend on how packets are divided into arrays.

use longwire_engine::{Bytes, DropReason, FrameContext, FrameMeta, Hook, Nanos, Packets};
use longwire_runtime::CPlugin;
use longwire_units::random::{Purpose, Stream};

use crate::plugins::tools::{example, load, probe};

const FRAMES: usize = 6_400;

/// Frames of many lengths, at irregular times.
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

    fn bytes(self) -> Vec<Vec<u8>> {
        self.0.into_iter().map(|(_, bytes)| bytes).collect()
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

/// Loads a hook, calls it for all frames in arrays, and returns the decisions.
fn decisions<const N: usize, T>(
    (file, hook, parameters): (&str, Hook, &str),
    purpose: Purpose,
    mut decide: impl FnMut(&mut CPlugin, [FrameContext<'_>; N], &mut Stream) -> [T; N],
) -> Vec<T> {
    let (mut plugin, faults) = load(file, hook, parameters);
    let traffic = Traffic::new();
    let mut stream = Stream::new(1, 0, purpose);
    let firsts = (0..FRAMES).step_by(N);
    let decided = firsts.flat_map(|first| decide(&mut plugin, traffic.batch(first), &mut stream));
    let decided = decided.collect();
    assert_eq!(faults.first(), None);
    decided
}

fn losses<const N: usize>(file: &str, parameters: &str) -> Vec<Option<DropReason>> {
    let hook = (file, Hook::Loss, parameters);
    decisions::<N, _>(hook, Purpose::MediumLoss, |plugin, frames, stream| {
        plugin.lose_batch(&frames, stream)
    })
}

fn delays<const N: usize>(file: &str, parameters: &str) -> Vec<Nanos> {
    let hook = (file, Hook::Delay, parameters);
    decisions::<N, _>(hook, Purpose::Delay, |plugin, frames, stream| {
        plugin.delay_batch(&frames, stream)
    })
}

/// Returns departures. Only the first packet of an array states when service begins: at its arrival
/// or at the previous departure, whichever is later.
fn departures<const N: usize>(file: &str, parameters: &str) -> Vec<Nanos> {
    let mut before = Nanos::ZERO;
    let hook = (file, Hook::Rate, parameters);
    decisions::<N, _>(hook, Purpose::Rate, |plugin, mut frames, stream| {
        frames[0].at = frames[0].at.max(before);
        let bits = frames
            .each_ref()
            .map(|frame| u64::from(frame.frame.len) * 8);
        let left = plugin.depart_batch(&frames, bits, stream);
        before = left[N - 1];
        left
    })
}

fn rewritten<const N: usize>() -> Vec<Vec<u8>> {
    let (mut plugin, faults) = load(&probe(), Hook::Rewrite, "after=0");
    let mut stream = Stream::new(1, 0, Purpose::Rewrite);
    let mut frames = Traffic::new().bytes();
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
    let wireless = "good=20ms,bad=5ms,delay=1ms,retry=3ms";
    for (file, parameters) in [
        (example("bursty_wireless.c"), wireless),
        (probe(), "fault=draws"),
    ] {
        let one = delays::<1>(&file, parameters);
        assert!(one.iter().any(|delay| *delay != one[0]), "{file}");
        assert_eq!(delays::<8>(&file, parameters), one, "{file}");
        assert_eq!(delays::<64>(&file, parameters), one, "{file}");
    }
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
    let one = rewritten::<1>();
    assert_ne!(one, Traffic::new().bytes());
    assert_eq!(rewritten::<8>(), one);
    assert_eq!(rewritten::<64>(), one);
}
