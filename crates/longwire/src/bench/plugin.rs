//! `bench plugin`: cost per packet of a plugin's hooks, called directly in batches of several
//! sizes, and within a link.

use std::hint::black_box;
use std::time::{Duration, Instant};

use longwire_engine::models::queue::QueueLimit;
use longwire_engine::{
    Bytes, FrameContext, FrameMeta, Hook, Link, LinkConfig, LinkId, LinkSpec, LinkSpecError, Nanos,
    Packets, Verdict,
};
use longwire_runtime::plugin::PluginError;
use longwire_runtime::{CPlugin, Faults, FileLoader};
use longwire_units::random::{Purpose, Stream};
use serde::Serialize;

use super::PluginArgs;
use super::harness::median;
use crate::Error;

/// Frame length in bytes.
const LEN: usize = 64;

/// Nanoseconds between frames: 64 bytes at 100 Mbit/s.
const GAP: u64 = 5_120;

/// Frames between two clock reads.
const ROUND: usize = 4_096;

/// A row: one hook.
#[derive(Debug, Serialize)]
pub(super) struct HookRow {
    hook: &'static str,
    /// Nanoseconds per packet with batches of this size.
    arrays_of_1: f64,
    arrays_of_8: f64,
    arrays_of_64: f64,
    /// Nanoseconds per packet that the hook adds to a link.
    in_a_link: f64,
}

/// Test conditions, printed above the table.
pub(super) const ABOUT: &str =
    "Cost of a plugin's hooks, alone and in a link, in ns per 64-byte packet.";

/// Hooks with their options.
const HOOKS: [(Hook, &str); 4] = [
    (Hook::Loss, "loss"),
    (Hook::Delay, "delay"),
    (Hook::Rate, "rate"),
    (Hook::Rewrite, "rewrite"),
];

pub(super) fn measure(args: &PluginArgs, quick: bool) -> Result<Vec<HookRow>, Error> {
    let bench = PluginBench {
        args,
        pairs: pairs(&args.parameters)?,
        faults: Faults::new(),
        time: if quick {
            Duration::from_millis(5)
        } else {
            Duration::from_nanos(args.time.as_nanos())
        },
    };
    let mut rows = Vec::new();
    for (hook, option) in HOOKS {
        match CPlugin::load(&args.file, hook, &bench.pairs, &bench.faults) {
            Ok(_) => rows.push(bench.row(hook, option)?),
            Err(PluginError::NoHook { .. }) => {}
            Err(error) => return Err(Error::usage(format!("{}: {error}", args.file))),
        }
    }
    match bench.faults.first() {
        Some(message) => Err(Error::failed(message)),
        None => Ok(rows),
    }
}

/// Parses `key=value` items, one per argument or joined by commas.
fn pairs(parameters: &[String]) -> Result<Vec<(String, String)>, Error> {
    let items = parameters.iter().flat_map(|items| items.split(','));
    let pair = |item: &str| match item.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Error::usage(format!(
            "'{item}' is not a parameter; write KEY=VALUE"
        ))),
    };
    items.map(pair).collect()
}

struct PluginBench<'a> {
    args: &'a PluginArgs,
    pairs: Vec<(String, String)>,
    faults: Faults,
    time: Duration,
}

impl PluginBench<'_> {
    fn row(&self, hook: Hook, option: &'static str) -> Result<HookRow, Error> {
        Ok(HookRow {
            hook: option,
            arrays_of_1: self.alone::<1>(hook)?,
            arrays_of_8: self.alone::<8>(hook)?,
            arrays_of_64: self.alone::<64>(hook)?,
            in_a_link: self.link(Some(option))? - self.link(None)?,
        })
    }

    /// Measures a hook in batches of `N`, in nanoseconds per packet.
    fn alone<const N: usize>(&self, hook: Hook) -> Result<f64, Error> {
        let loaded = CPlugin::load(&self.args.file, hook, &self.pairs, &self.faults);
        let mut plugin = loaded.map_err(Error::failed)?;
        let mut stream = Stream::new(1, 0, Purpose::MediumLoss);
        let mut bytes = [[0x5a; LEN]; N];
        let mut now = 0;
        let mut free = Nanos::ZERO;
        Ok(self.timed(|| {
            for _ in 0..ROUND / N {
                let at: [u64; N] = std::array::from_fn(|index| now + index as u64 * GAP);
                now += N as u64 * GAP;
                if hook == Hook::Rewrite {
                    let frames = bytes.each_mut().map(<[u8; LEN]>::as_mut_slice);
                    plugin.rewrite_batch(at.map(Nanos::from_nanos), frames, &mut stream);
                    continue;
                }
                let mut frames = at.map(|at| frame_context(at, &bytes[0]));
                match hook {
                    Hook::Loss => drop(black_box(plugin.lose_batch(&frames, &mut stream))),
                    Hook::Delay => drop(black_box(plugin.delay_batch(&frames, &mut stream))),
                    Hook::Rate | Hook::Rewrite => {
                        frames[0].at = frames[0].at.max(free);
                        let bits = [LEN as u64 * 8; N];
                        let left = plugin.depart_batch(&frames, bits, &mut stream);
                        free = left[N - 1];
                    }
                }
            }
        }))
    }

    /// Measures a link with one plugin option or none, in nanoseconds per packet.
    fn link(&self, option: Option<&str>) -> Result<f64, Error> {
        let mut link = Link::new(self.config(option)?, 1, LinkId(0));
        let mut bytes = [0x5a; LEN];
        let mut now = 0;
        Ok(self.timed(|| {
            for _ in 0..ROUND {
                now += GAP;
                let frame = FrameMeta::new(Nanos::from_nanos(now), LEN as u32);
                if let Verdict::Deliver(delivery) = link.offer(black_box(frame), &bytes)
                    && delivery.edits.any()
                {
                    link.edit(&delivery, &mut bytes);
                }
            }
        }))
    }

    fn config(&self, option: Option<&str>) -> Result<LinkConfig, Error> {
        let loader = FileLoader::reporting_to(&self.faults);
        // Use an unlimited queue: dropping the frames that queue behind a plugin's rate would hide
        // part of its cost.
        let mut spec = LinkSpec::new().queue(QueueLimit::UNLIMITED);
        if let Some(option) = option {
            let own = self.pairs.iter();
            let own: String = own.map(|(key, value)| format!(",{key}={value}")).collect();
            let text = format!("plugin:file={}{own}", self.args.file);
            spec.set(option, &text, &loader).map_err(Error::usage)?;
        }
        spec.build(&loader)
            .map_err(|error| Error::usage(LinkSpecError::from(error)))
    }

    /// Returns the median nanoseconds per packet over several measurements, each of many rounds.
    fn timed(&self, mut round: impl FnMut()) -> f64 {
        const MEASUREMENTS: u32 = 5;
        round();
        let measure = |_| {
            let (start, mut rounds) = (Instant::now(), 0u64);
            while start.elapsed() < self.time / MEASUREMENTS {
                round();
                rounds += 1;
            }
            start.elapsed().as_nanos() as f64 / (rounds.max(1) * ROUND as u64) as f64
        };
        median((0..MEASUREMENTS).map(measure))
    }
}

fn frame_context(at: u64, bytes: &[u8]) -> FrameContext<'_> {
    FrameContext {
        frame: FrameMeta::new(Nanos::from_nanos(at), bytes.len() as u32),
        at: Nanos::from_nanos(at),
        bytes,
        waiting: (Packets(0), Bytes(0)),
    }
}
