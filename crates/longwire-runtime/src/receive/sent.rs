//! What is sent, told to who receives it: the comparison of a replay with what
//! becomes of it on the way.
//!
//! The sending stage notes each frame as it gives it to the port, and tells
//! the receiver before it leaves; so whatever was made of a frame before
//! (altered, spoilt, doubled or dropped by the emulated link) is part of what
//! was sent, and only what the network does afterwards is compared.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use longwire_engine::Nanos;

use super::digest::{Ignored, digest};

/// The shortest frame on a wire: devices fill shorter ones with zeros.
const SHORTEST: u32 = 60;

/// Bursts that may be on their way to a receiver that does not come to look.
const BURSTS: usize = 1 << 16;

/// Frames that may be gathered when there is no room for more bursts.
const GATHERED_MAX: usize = 1 << 16;

/// A frame that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentFrame {
    pub digest: u64,
    /// When it was due; zero where it had no time: then when it is handed
    /// over.
    pub release: Nanos,
    pub wire_len: u32,
}

/// Frames that leave together, and when they were handed over.
#[derive(Debug)]
struct SentBurst {
    handover: Nanos,
    frames: SentFrames,
}

/// Most bursts of a replay are of one frame, which needs no memory of its own.
#[derive(Debug)]
enum SentFrames {
    One(SentFrame),
    Many(Vec<SentFrame>),
}

/// The sending end.
#[derive(Debug)]
pub struct SentLog {
    sender: SyncSender<SentBurst>,
    ignored: Ignored,
    gathered: Vec<SentFrame>,
    lost: u64,
}

/// The receiving end.
#[derive(Debug)]
pub struct Sent {
    receiver: Receiver<SentBurst>,
    pub(super) ignored: Ignored,
    /// What the sender is called in the report.
    pub(super) name: String,
}

/// Both ends. `name` is the sender's, for the report; `ignored` is what may
/// change on the way.
pub fn sent_log(name: &str, ignored: Ignored) -> (SentLog, Sent) {
    let (sender, receiver) = sync_channel(BURSTS);
    let log = SentLog {
        sender,
        ignored,
        gathered: Vec::new(),
        lost: 0,
    };
    let name = name.to_owned();
    let sent = Sent {
        receiver,
        ignored,
        name,
    };
    (log, sent)
}

/// What a frame is known by, at both ends. Short ones may have been filled up
/// with zeros on the way.
#[inline]
pub(super) fn known_by(bytes: &[u8], ignored: &Ignored) -> (u64, u32) {
    let wire_len = (bytes.len() as u32).max(SHORTEST);
    (digest(bytes, wire_len, ignored), wire_len)
}

impl SentLog {
    /// The port has taken a frame, which leaves with the next flush; `release`
    /// is when it is due, if it is due at a time.
    #[inline]
    pub(crate) fn note(&mut self, bytes: &[u8], release: Option<Nanos>) {
        let (digest, wire_len) = known_by(bytes, &self.ignored);
        self.gathered.push(SentFrame {
            digest,
            release: release.unwrap_or_default(),
            wire_len,
        });
    }

    /// What was noted leaves now.
    #[inline]
    pub(crate) fn tell(&mut self, handover: Nanos) {
        let frames = match self.gathered[..] {
            [] => return,
            [frame] => SentFrames::One(frame),
            _ => {
                let next = Vec::with_capacity(self.gathered.len());
                SentFrames::Many(std::mem::replace(&mut self.gathered, next))
            }
        };
        self.gathered.clear();
        let burst = SentBurst { handover, frames };
        let Err(TrySendError::Full(burst) | TrySendError::Disconnected(burst)) =
            self.sender.try_send(burst)
        else {
            return;
        };
        // Gathered on, so that there are fewer and longer bursts.
        match burst.frames {
            SentFrames::One(frame) => self.gathered.push(frame),
            SentFrames::Many(frames) => self.gathered = frames,
        }
        if self.gathered.len() >= GATHERED_MAX {
            self.lost += self.gathered.len() as u64;
            self.gathered.clear();
        }
    }

    /// Frames that the receiver was not told of, for it did not come to look
    /// or is gone.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

impl Sent {
    /// Takes what has been sent since the last call: each frame, and when it
    /// was handed over.
    pub(super) fn drain(&self, mut take: impl FnMut(SentFrame, Nanos)) {
        for burst in self.receiver.try_iter() {
            let mut sent = |mut frame: SentFrame| {
                if frame.release == Nanos::ZERO {
                    frame.release = burst.handover;
                }
                // One that is given to the port early leaves at its release.
                take(frame, burst.handover.max(frame.release));
            };
            match burst.frames {
                SentFrames::One(frame) => sent(frame),
                SentFrames::Many(frames) => frames.into_iter().for_each(sent),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(sent: &Sent) -> Vec<(u64, Nanos)> {
        let mut all = Vec::new();
        sent.drain(|frame, left| all.push((frame.digest, left)));
        all
    }

    #[test]
    fn frames_are_told_in_order_with_their_handover() {
        let (mut log, sent) = sent_log("a", Ignored::default());
        let known = |byte| known_by(&[byte; 70], &Ignored::default()).0;
        let (early, late) = (Nanos::from_micros(5), Nanos::from_micros(9));
        log.note(&[1; 70], Some(early));
        log.tell(late);
        log.tell(late);
        assert_eq!(drained(&sent), [(known(1), late)]);
        // Handed over before its release: it is held until then.
        log.note(&[2; 70], Some(late));
        log.note(&[3; 70], Some(early));
        assert!(drained(&sent).is_empty());
        log.tell(early);
        assert_eq!(drained(&sent), [(known(2), late), (known(3), early)]);
    }

    #[test]
    fn a_frame_without_a_time_is_due_when_it_is_handed_over() {
        let (mut log, sent) = sent_log("a", Ignored::default());
        log.note(&[1; 70], None);
        log.tell(Nanos::from_micros(9));
        let mut due = Vec::new();
        sent.drain(|frame, left| due.push((frame.release, left)));
        assert_eq!(due, [(Nanos::from_micros(9), Nanos::from_micros(9))]);
    }

    #[test]
    fn a_short_frame_is_known_by_its_filled_form() {
        let ignored = Ignored::default();
        let mut filled = vec![7; 42];
        filled.resize(60, 0);
        assert_eq!(known_by(&[7; 42], &ignored), known_by(&filled, &ignored));
        filled.push(0);
        assert_ne!(known_by(&[7; 42], &ignored), known_by(&filled, &ignored));
    }

    #[test]
    fn what_nobody_takes_is_bounded_and_counted() {
        let (mut log, sent) = sent_log("a", Ignored::default());
        let told = (BURSTS + GATHERED_MAX + 1_000) as u64;
        for _ in 0..told {
            log.note(&[0; 14], None);
            log.tell(Nanos::ZERO);
        }
        assert_eq!(log.lost(), GATHERED_MAX as u64);
        assert!(log.gathered.len() <= 1_000);
        let mut came = drained(&sent).len() as u64;
        log.note(&[0; 14], None);
        log.tell(Nanos::ZERO);
        came += drained(&sent).len() as u64;
        assert_eq!(came + log.lost(), told + 1);
    }

    #[test]
    fn a_receiver_that_is_gone_costs_bounded_memory() {
        let (mut log, sent) = sent_log("a", Ignored::default());
        drop(sent);
        for _ in 0..GATHERED_MAX + 5 {
            log.note(&[0; 14], None);
            log.tell(Nanos::ZERO);
        }
        assert_eq!((log.lost(), log.gathered.len()), (GATHERED_MAX as u64, 5));
    }
}
