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
use instance::{DELAY, DEPART, Instance, LOSE, StateAccess};

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
        if self.is_out(frames) {
            return [None; N];
        }
        let packets = frames.each_ref().map(|frame| self.packet(frame, 0));
        let mut fates = [abi::NO_FATE; N];
        let mut random = HookRandom::new(stream);
        let hook = |state: &mut Instance| state.decide(LOSE, &mut random, &packets, &mut fates);
        let called = self.state.call(hook);
        let mut lost = [None; N];
        let checked = called.and_then(|()| {
            for (index, fate) in fates.into_iter().enumerate() {
                lost[index] = reason(fate).map_err(|why| about("lose", &packets[index], &why))?;
            }
            Ok(())
        });
        self.sound(checked).map_or([None; N], |()| lost)
    }

    /// Returns the delays of frames, in order, as [`Plugin::delay`] does for each.
    pub fn delay_batch<const N: usize>(
        &mut self,
        frames: &[FrameContext<'_>; N],
        stream: &mut Stream,
    ) -> [Nanos; N] {
        if self.is_out(frames) {
            return [Nanos::ZERO; N];
        }
        let packets = frames.each_ref().map(|frame| self.packet(frame, 0));
        let mut delays = [abi::INVALID; N];
        let mut random = HookRandom::new(stream);
        let hook = |state: &mut Instance| state.decide(DELAY, &mut random, &packets, &mut delays);
        let called = self.state.call(hook);
        let least = self.hints.delay_least;
        let mut drawn = [Nanos::ZERO; N];
        let checked = called.and_then(|()| {
            for (index, delay) in delays.into_iter().enumerate() {
                let refuse = |why: String| about("delay", &packets[index], &why);
                drawn[index] = time(delay).map_err(refuse)?;
                if drawn[index] < least {
                    let least = least.as_nanos();
                    let why = format!("{delay} ns is below the plugin's delay_least_ns, {least}");
                    return Err(refuse(why));
                }
            }
            Ok(())
        });
        self.sound(checked).map_or([Nanos::ZERO; N], |()| drawn)
    }

    /// Returns the departures of frames, in order, as [`Plugin::depart`] does for each. Service
    /// begins when the previous frame has left.
    pub fn depart_batch<const N: usize>(
        &mut self,
        frames: &[FrameContext<'_>; N],
        wire_bits: [u64; N],
        stream: &mut Stream,
    ) -> [Nanos; N] {
        let at_once = frames.each_ref().map(|frame| frame.at);
        if self.is_out(frames) {
            return at_once;
        }
        let packet = |index| self.packet(&frames[index], wire_bits[index]);
        let packets: [abi::Packet; N] = std::array::from_fn(packet);
        let mut departures = [abi::INVALID; N];
        let mut random = HookRandom::new(stream);
        let hook =
            |state: &mut Instance| state.decide(DEPART, &mut random, &packets, &mut departures);
        let called = self.state.call(hook);
        let mut left = [Nanos::ZERO; N];
        let mut begins = Nanos::ZERO;
        let checked = called.and_then(|()| {
            for (index, departure) in departures.into_iter().enumerate() {
                begins = begins.max(frames[index].at);
                let refuse = |why: String| about("depart", &packets[index], &why);
                let at = self.instant(departure).map_err(refuse)?;
                if at < begins {
                    let begins = self.relative(begins);
                    let why = format!("{departure} ns is before service begins, at {begins} ns");
                    return Err(refuse(why));
                }
                (left[index], begins) = (at, at);
            }
            Ok(())
        });
        self.sound(checked).map_or(at_once, |()| left)
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

    /// Returns whether the plugin must not be called: after a fault, or for a frame at
    /// [`Nanos::MAX`], which would overflow in C code.
    #[inline]
    fn is_out(&self, frames: &[FrameContext<'_>]) -> bool {
        self.faults.any() || frames.iter().any(|frame| frame.at == Nanos::MAX)
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
