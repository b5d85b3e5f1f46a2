//! A log of sent frames, for a receiver in the same process.
//!
//! The sending stage logs each frame at its handover and publishes the log before the
//! frames leave. So the log includes the effects of the emulated link (alteration,
//! corruption, duplication and drops), and a receiver that compares arrivals with it sees
//! only what the network did afterwards.

mod digest;

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use longwire_engine::Nanos;

pub use digest::{IgnoredFields, UnknownField, digest};

/// Minimum frame length on a wire in bytes: devices pad shorter frames with zeros.
const SHORTEST: u32 = 60;

/// Maximum number of unread bursts.
const BURSTS: usize = 1 << 16;

/// Maximum number of frames kept when the queue of bursts is full.
const GATHERED_MAX: usize = 1 << 16;

/// A frame that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// Its digest; see [`fingerprint`].
    pub digest: u64,
    /// Its due time; for a frame without one, its handover.
    pub release: Nanos,
    /// Its length on the wire with padding, in bytes.
    pub wire_len: u32,
}

/// Frames that leave together, and their handover.
#[derive(Debug)]
struct SentBurst {
    handover: Nanos,
    frames: BurstFrames,
}

/// Frames of a burst. Most bursts of a replay have one frame, which needs no allocation.
#[derive(Debug)]
enum BurstFrames {
    One(SentFrame),
    Many(Vec<SentFrame>),
}

/// The sender's end of a log.
#[derive(Debug)]
pub struct SentLog {
    sender: SyncSender<SentBurst>,
    ignored: IgnoredFields,
    gathered: Vec<SentFrame>,
    lost: u64,
}

/// The receiver's end of a log.
#[derive(Debug)]
pub struct SentFrames {
    receiver: Receiver<SentBurst>,
    ignored: IgnoredFields,
    name: String,
}

/// Returns both ends of a log. `name` is the sender's name in the report; `ignored` are
/// fields that may change in transit.
pub fn sent_log(name: &str, ignored: IgnoredFields) -> (SentLog, SentFrames) {
    let (sender, receiver) = sync_channel(BURSTS);
    let log = SentLog {
        sender,
        ignored,
        gathered: Vec::new(),
        lost: 0,
    };
    let name = name.to_owned();
    let sent = SentFrames {
        receiver,
        ignored,
        name,
    };
    (log, sent)
}

/// Returns the digest and wire length that identify a frame. Short frames count as padded
/// with zeros, as devices do.
#[inline]
pub fn fingerprint(bytes: &[u8], ignored: &IgnoredFields) -> (u64, u32) {
    let wire_len = (bytes.len() as u32).max(SHORTEST);
    (digest(bytes, wire_len, ignored), wire_len)
}

impl SentLog {
    /// Logs a frame that the port accepted and sends with its next flush; `release` is
    /// its due time, if any.
    #[inline]
    pub fn note(&mut self, bytes: &[u8], release: Option<Nanos>) {
        let (digest, wire_len) = fingerprint(bytes, &self.ignored);
        self.gathered.push(SentFrame {
            digest,
            release: release.unwrap_or_default(),
            wire_len,
        });
    }

    /// Publishes the logged frames, which leave now.
    #[inline]
    pub fn send(&mut self, handover: Nanos) {
        let frames = match self.gathered[..] {
            [] => return,
            [frame] => BurstFrames::One(frame),
            _ => {
                let next = Vec::with_capacity(self.gathered.len());
                BurstFrames::Many(std::mem::replace(&mut self.gathered, next))
            }
        };
        self.gathered.clear();
        let burst = SentBurst { handover, frames };
        let Err(TrySendError::Full(burst) | TrySendError::Disconnected(burst)) =
            self.sender.try_send(burst)
        else {
            return;
        };
        // Kept for the next burst.
        match burst.frames {
            BurstFrames::One(frame) => self.gathered.push(frame),
            BurstFrames::Many(frames) => self.gathered = frames,
        }
        if self.gathered.len() >= GATHERED_MAX {
            self.lost += self.gathered.len() as u64;
            self.gathered.clear();
        }
    }

    /// Returns the number of frames that did not reach the receiver because it is slow or
    /// gone.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl SentFrames {
    /// Returns the sender's name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the fields that may change in transit.
    pub fn ignored(&self) -> &IgnoredFields {
        &self.ignored
    }

    /// Passes each frame sent since the last call to `take`, with its departure.
    pub fn drain(&self, mut take: impl FnMut(SentFrame, Nanos)) {
        for burst in self.receiver.try_iter() {
            let mut sent = |mut frame: SentFrame| {
                if frame.release == Nanos::ZERO {
                    frame.release = burst.handover;
                }
                // A port with a lead holds frames until their release.
                take(frame, burst.handover.max(frame.release));
            };
            match burst.frames {
                BurstFrames::One(frame) => sent(frame),
                BurstFrames::Many(frames) => frames.into_iter().for_each(sent),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(sent: &SentFrames) -> Vec<(u64, Nanos)> {
        let mut all = Vec::new();
        sent.drain(|frame, left| all.push((frame.digest, left)));
        all
    }

    #[test]
    fn unread_frames_are_bounded_and_counted() {
        let (mut log, sent) = sent_log("a", IgnoredFields::default());
        let noted = (BURSTS + GATHERED_MAX + 1_000) as u64;
        for _ in 0..noted {
            log.note(&[0; 14], None);
            log.send(Nanos::ZERO);
        }
        assert_eq!(log.lost(), GATHERED_MAX as u64);
        assert!(log.gathered.len() <= 1_000);
        let mut came = drained(&sent).len() as u64;
        log.note(&[0; 14], None);
        log.send(Nanos::ZERO);
        came += drained(&sent).len() as u64;
        assert_eq!(came + log.lost(), noted + 1);
    }

    #[test]
    fn a_receiver_that_is_gone_costs_bounded_memory() {
        let (mut log, sent) = sent_log("a", IgnoredFields::default());
        drop(sent);
        for _ in 0..GATHERED_MAX + 5 {
            log.note(&[0; 14], None);
            log.send(Nanos::ZERO);
        }
        assert_eq!((log.lost(), log.gathered.len()), (GATHERED_MAX as u64, 5));
    }
}
