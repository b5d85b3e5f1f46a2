//! User models in C: the Rust side of `include/longwire_plugin.h`, documented in docs/plugins.md.
//!
//! A [`CPlugin`] is one hook of a plugin state. It validates every result. An out-of-range result
//! or an error from the plugin is reported to [`Faults`], which ends the run, and the plugin is not
//! called again.

mod abi;
#[cfg(test)]
mod abi_tests;
mod calls;
mod crash;
mod host;
mod instance;
mod library;

pub(crate) use calls::{Call, call_of, thread_id};
pub use crash::{end_process, ends, on_stuck_main};
pub(crate) use instance::SharedState;
pub use library::PluginError;

use std::sync::Arc;

use longwire_engine::{DropReason, FrameContext, Hook, Nanos, Plugin, PluginHints};
use longwire_units::random::Stream;

use crate::faults::Faults;
use host::HookRandom;
use instance::{DELAY, DEPART, DecideHook, Instance, LOSE, StateAccess};

/// One hook of a plugin state.
///
/// The engine decides one frame at a time. The batch functions serve measurements, and tests that
/// check their results against single calls.
#[derive(Debug)]
pub struct CPlugin {
    /// The path given by the user, for messages.
    file: Arc<str>,
    state: StateAccess,
    hints: PluginHints,
    epoch: Nanos,
    faults: Faults,
}

impl CPlugin {
    /// Loads a plugin for one hook, with a separate state.
    ///
    /// # Errors
    /// The file is not a plugin, lacks the hook, or rejects its parameters.
    pub fn load(
        file: &str,
        hook: Hook,
        parameters: &[(String, String)],
        faults: &Faults,
    ) -> Result<CPlugin, PluginError> {
        let mut plugin = SharedState::create(file, parameters)?.hook(hook, faults)?;
        plugin.state.settle();
        Ok(plugin)
    }

    /// Returns the fates of frames, in order, as [`Plugin::lose`] does for each.
    pub fn lose_batch<const N: usize>(
        &mut self,
        frames: &[FrameContext<'_>; N],
        stream: &mut Stream,
    ) -> [Option<DropReason>; N] {
        let initial = (abi::NO_FATE, [None; N]);
        self.decide(LOSE, (frames, [0; N]), initial, stream, |_, _, fate| {
            reason(fate)
        })
    }

    /// Returns the delays of frames, in order, as [`Plugin::delay`] does for each.
    pub fn delay_batch<const N: usize>(
        &mut self,
        frames: &[FrameContext<'_>; N],
        stream: &mut Stream,
    ) -> [Nanos; N] {
        let initial = (abi::INVALID, [Nanos::ZERO; N]);
        let check = |plugin: &CPlugin, _: &FrameContext<'_>, delay| {
            let drawn = time(delay)?;
            let least = plugin.hints.delay_least;
            if drawn < least {
                let least = least.as_nanos();
                return Err(format!(
                    "{delay} ns is below the plugin's delay_least_ns, {least}"
                ));
            }
            Ok(drawn)
        };
        self.decide(DELAY, (frames, [0; N]), initial, stream, check)
    }

    /// Returns the departures of frames, in order, as [`Plugin::depart`] does for each. Service
    /// begins when the previous frame has left.
    pub fn depart_batch<const N: usize>(
        &mut self,
        frames: &[FrameContext<'_>; N],
        wire_bits: [u64; N],
        stream: &mut Stream,
    ) -> [Nanos; N] {
        let initial = (abi::INVALID, frames.each_ref().map(|frame| frame.at));
        let mut begins = Nanos::ZERO;
        let check = |plugin: &CPlugin, frame: &FrameContext<'_>, departure| {
            begins = begins.max(frame.at);
            let at = plugin.instant(departure)?;
            if at < begins {
                let begins = plugin.relative(begins);
                return Err(format!(
                    "{departure} ns is before service begins, at {begins} ns"
                ));
            }
            begins = at;
            Ok(at)
        };
        self.decide(DEPART, (frames, wire_bits), initial, stream, check)
    }

    /// Calls a hook for frames, and checks its results in order. `unset` is the value of each
    /// result before the call. If the plugin must not be called or fails, returns `otherwise`.
    ///
    /// The plugin is not called after a fault, or for a frame at [`Nanos::MAX`], which would
    /// overflow in C code.
    #[inline]
    fn decide<const N: usize, T: Copy, D: Copy>(
        &mut self,
        hook: DecideHook<T>,
        (frames, wire_bits): (&[FrameContext<'_>; N], [u64; N]),
        (unset, otherwise): (T, [D; N]),
        stream: &mut Stream,
        mut check: impl FnMut(&CPlugin, &FrameContext<'_>, T) -> Result<D, String>,
    ) -> [D; N] {
        if self.faults.any() || frames.iter().any(|frame| frame.at == Nanos::MAX) {
            return otherwise;
        }
        let packet = |index| self.packet(&frames[index], wire_bits[index]);
        let packets: [abi::Packet; N] = std::array::from_fn(packet);
        let mut results = [unset; N];
        let mut random = HookRandom::new(stream);
        let call = |state: &mut Instance| state.decide(hook, &mut random, &packets, &mut results);
        let called = self.state.call(call);
        let mut decided = otherwise;
        let checked = called.and_then(|()| {
            for (index, result) in results.into_iter().enumerate() {
                let refuse = |why: String| about(hook.0.name(), &packets[index], &why);
                decided[index] = check(self, &frames[index], result).map_err(refuse)?;
            }
            Ok(())
        });
        self.sound(checked).map_or(otherwise, |()| decided)
    }

    /// Rewrites the bytes of frames, in order, as [`Plugin::rewrite`] does for each.
    pub fn rewrite_batch<const N: usize>(
        &mut self,
        at: [Nanos; N],
        frames: [&mut [u8]; N],
        stream: &mut Stream,
    ) {
        if self.faults.any() || at.contains(&Nanos::MAX) {
            return;
        }
        let lens = frames.each_ref().map(|bytes| bytes.len() as u32);
        let bytes = frames.map(<[u8]>::as_mut_ptr);
        let packets: [abi::Packet; N] = std::array::from_fn(|index| abi::Packet {
            at_ns: self.relative(at[index]),
            arrival_ns: abi::UNKNOWN,
            bytes: bytes[index],
            bytes_count: lens[index],
            length: lens[index],
            wire_bits: 0,
            queue_packets: 0,
            queue_bytes: 0,
        });
        let mut random = HookRandom::new(stream);
        let hook = |state: &mut Instance| state.rewrite(&mut random, &packets, &bytes);
        let called = self.state.call(hook);
        self.sound(called);
    }

    #[inline]
    fn packet(&self, frame: &FrameContext<'_>, wire_bits: u64) -> abi::Packet {
        let len = frame.frame.len;
        abi::Packet {
            at_ns: self.relative(frame.at),
            arrival_ns: self.relative(frame.frame.arrival),
            bytes: frame.bytes.as_ptr(),
            // In a super-packet, `bytes` may extend beyond this frame.
            bytes_count: (frame.bytes.len() as u64).min(u64::from(len)) as u32,
            length: len,
            wire_bits,
            queue_packets: frame.waiting.0.0,
            queue_bytes: frame.waiting.1.0,
        }
    }

    /// Returns a time relative to the link's start, at least 0.
    #[inline]
    fn relative(&self, time: Nanos) -> i64 {
        let since = time.saturating_sub(self.epoch).as_nanos();
        i64::try_from(since)
            .unwrap_or(abi::NEVER)
            .min(abi::NEVER - 1)
    }

    #[inline]
    fn instant(&self, relative: i64) -> Result<Nanos, String> {
        let since = time(relative)?;
        Ok(self.epoch.saturating_add(since))
    }

    /// Returns a hook's result if valid. Otherwise reports it and returns `None`.
    #[inline]
    fn sound<T>(&self, checked: Result<T, String>) -> Option<T> {
        match checked {
            Ok(result) => Some(result),
            Err(why) => {
                let file = &self.file;
                self.faults.report(format!("plugin {file}: {why}"));
                None
            }
        }
    }
}

impl Plugin for CPlugin {
    fn hints(&self) -> PluginHints {
        self.hints
    }

    fn start(&mut self, epoch: Nanos) {
        self.epoch = epoch;
        // All of the link's hooks exist by now.
        self.state.settle();
    }

    fn lose(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Option<DropReason> {
        let [lost] = self.lose_batch(&[*frame], stream);
        lost
    }

    fn delay(&mut self, frame: &FrameContext<'_>, stream: &mut Stream) -> Nanos {
        let [delay] = self.delay_batch(&[*frame], stream);
        delay
    }

    fn ready(&mut self, from: Nanos, stream: &mut Stream) -> Nanos {
        if self.faults.any() || from == Nanos::MAX {
            return from;
        }
        let mut random = HookRandom::new(stream);
        let since = self.relative(from);
        let called = self.state.call(|state| state.ready(&mut random, since));
        let checked = called.and_then(|ready| {
            let Some(ready) = ready else { return Ok(from) };
            let at = self.instant(ready).map_err(|why| format!("ready: {why}"))?;
            if at < from {
                return Err(format!(
                    "ready: {ready} ns is before the requested time, {since} ns"
                ));
            }
            Ok(at)
        });
        self.sound(checked).unwrap_or(from)
    }

    fn depart(&mut self, frame: &FrameContext<'_>, wire_bits: u64, stream: &mut Stream) -> Nanos {
        let [departure] = self.depart_batch(&[*frame], [wire_bits], stream);
        departure
    }

    fn rewrite(&mut self, at: Nanos, bytes: &mut [u8], stream: &mut Stream) {
        self.rewrite_batch([at], [bytes], stream);
    }
}

/// Converts a fate. Rejects unknown numbers.
#[inline]
fn reason(fate: u8) -> Result<Option<DropReason>, String> {
    Ok(match fate {
        0 => None,
        1 => Some(DropReason::Loss),
        2 => Some(DropReason::BitError),
        3 => Some(DropReason::Outage),
        4 => Some(DropReason::Content),
        abi::NO_FATE => return Err("no fate was set".to_owned()),
        other => return Err(format!("{other} is not a fate; fates are 0 to 4")),
    })
}

/// Converts a time result.
#[inline]
fn time(nanos: i64) -> Result<Nanos, String> {
    match nanos {
        abi::NEVER => Ok(Nanos::MAX),
        0.. => Ok(Nanos::from_nanos(nanos.cast_unsigned())),
        abi::INVALID => Err("no time was set, or it is NaN".to_owned()),
        _ => Err(format!("{nanos} ns is negative")),
    }
}

/// Returns the message for an invalid result on a packet.
#[cold]
fn about(hook: &str, packet: &abi::Packet, why: &str) -> String {
    let abi::Packet { length, at_ns, .. } = packet;
    format!("{hook}: for a packet of {length} bytes at {at_ns} ns: {why}")
}
