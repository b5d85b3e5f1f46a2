//! A log of sent frames, for a receiver in the same process.
//!
//! The sending stage logs each frame at its handover, and publishes the log before the frames
//! leave. The log therefore includes the effects of the emulated link (alteration, corruption,
//! duplication and drops). A receiver that compares arrivals with the log detects only effects
//! after the handover.

use std::str::FromStr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use longwire_engine::Nanos;
use longwire_packet::header::{IpHeader, IpVersion, Piece, Transport};

/// Minimum wire length in bytes, without the frame check sequence. Devices pad shorter frames with
/// zeros.
const SHORTEST: u32 = 60;

/// Maximum number of unread bursts.
const BURSTS: usize = 1 << 16;

/// Maximum number of frames kept while the queue of bursts is full.
const GATHERED_MAX: usize = 1 << 16;

/// A frame that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// The frame's digest; see [`fingerprint`].
    pub digest: u64,
    /// Due time of the frame; its handover if it has none.
    pub release: Nanos,
    /// Wire length with padding, in bytes.
    pub wire_len: u32,
}

/// Frames that leave together, with their handover.
#[derive(Debug)]
struct SentBurst {
    handover: Nanos,
    frames: BurstFrames,
}

/// A burst's frames. Most bursts in a replay have one frame, which needs no allocation.
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

/// Returns both ends of a log. `name` is the sender's name in the report. `ignored` names the
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

/// Returns the digest and wire length that identify a frame. Short frames are hashed with the zero
/// padding that devices add.
#[inline]
pub fn fingerprint(bytes: &[u8], ignored: &IgnoredFields) -> (u64, u32) {
    let wire_len = (bytes.len() as u32).max(SHORTEST);
    (digest(bytes, wire_len, ignored), wire_len)
}

impl SentLog {
    /// Logs a frame that the port has accepted and will send with its next flush. `release` is its
    /// due time, if any.
    #[inline]
    pub fn note(&mut self, bytes: &[u8], release: Option<Nanos>) {
        let (digest, wire_len) = fingerprint(bytes, &self.ignored);
        self.gathered.push(SentFrame {
            digest,
            release: release.unwrap_or_default(),
            wire_len,
        });
    }

    /// Publishes the logged frames, which are about to leave.
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
        // Keep the frames for the next burst.
        match burst.frames {
            BurstFrames::One(frame) => self.gathered.push(frame),
            BurstFrames::Many(frames) => self.gathered = frames,
        }
        if self.gathered.len() >= GATHERED_MAX {
            self.lost += self.gathered.len() as u64;
            self.gathered.clear();
        }
    }

    /// Returns the number of frames lost because the receiver was too slow or gone.
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

/// Header fields that a digest ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields(u8);

/// Names of the fields. The index of a name is the field's bit in a set.
const FIELDS: [&str; 6] = ["mac", "address", "port", "tos", "ttl", "checksum"];
const MAC: u8 = 1;
const ADDRESS: u8 = 1 << 1;
const PORT: u8 = 1 << 2;
const TOS: u8 = 1 << 3;
const TTL: u8 = 1 << 4;
const CHECKSUM: u8 = 1 << 5;

/// A set of fields, and the offset and length of a part of a header. The part is zeroed if any of
/// these fields is ignored.
type Part = (u8, usize, usize);

/// The error for an unknown field name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' cannot be ignored; the fields are mac, address, port, tos, ttl and checksum")]
pub struct UnknownField(String);

impl FromStr for IgnoredFields {
    type Err = UnknownField;

    /// Parses comma-separated names, such as `mac,ttl,checksum`.
    fn from_str(text: &str) -> Result<IgnoredFields, UnknownField> {
        let mut ignored = IgnoredFields::default();
        for name in text.split(',').map(str::trim) {
            let bit = FIELDS.iter().position(|known| *known == name);
            ignored.0 |= 1 << bit.ok_or_else(|| UnknownField(name.to_owned()))?;
        }
        Ok(ignored)
    }
}

/// Length in bytes of a frame's head, which contains all ignored fields.
const HEAD: usize = 256;

/// Returns a frame's digest. Frames that differ only in ignored fields have equal digests; other
/// frames collide with a probability of about 2^-64. Bytes missing from a truncated frame count as
/// zeros.
#[inline]
pub fn digest(bytes: &[u8], wire_len: u32, ignored: &IgnoredFields) -> u64 {
    let mut digest = Digest::new(wire_len);
    let (head, rest) = bytes.split_at(bytes.len().min(HEAD));
    if *ignored == IgnoredFields::default() {
        digest.absorb(head);
    } else {
        let mut copy = [0; HEAD];
        let copy = &mut copy[..head.len()];
        copy.copy_from_slice(head);
        blank(copy, *ignored);
        digest.absorb(copy);
    }
    digest.absorb(rest);
    digest.finish(bytes.len(), wire_len)
}

/// Parts of an IPv4 header. Its checksum covers all of them.
const V4: [Part; 4] = [
    (TOS, 1, 1),
    (TTL, 8, 1),
    (CHECKSUM | TTL | TOS | ADDRESS, 10, 2),
    (ADDRESS, 12, 8),
];

/// Parts of an IPv6 header, except for the traffic class, which straddles two bytes.
const V6: [Part; 2] = [(TTL, 7, 1), (ADDRESS, 8, 32)];

/// Protocol number, [`PORT`] if the header begins with two ports, and offset and length of the
/// checksum, for TCP, UDP, DCCP, SCTP, ICMP, IGMP and ICMPv6.
const PROTOCOLS: [(u8, u8, usize, usize); 7] = [
    (6, PORT, 16, 2),
    (17, PORT, 6, 2),
    (33, PORT, 6, 2),
    (132, PORT, 8, 4),
    (1, 0, 2, 2),
    (2, 0, 2, 2),
    (58, 0, 2, 2),
];

/// Zeroes the ignored fields.
fn blank(head: &mut [u8], ignored: IgnoredFields) {
    let zero = |head: &mut [u8], at: usize, parts: &[Part]| {
        for (fields, from, len) in parts {
            let end = (at + from + len).min(head.len());
            if ignored.0 & fields != 0
                && let Some(part) = head.get_mut(at + from..end)
            {
                part.fill(0);
            }
        }
    };
    zero(head, 0, &[(MAC, 0, 12)]);
    let Some(ip) = IpHeader::parse(head) else {
        return;
    };
    let transport = ip.transport(head);
    match ip.version {
        IpVersion::V4 => zero(head, ip.at, &V4),
        IpVersion::V6 => {
            zero(head, ip.at, &V6);
            if ignored.0 & TOS != 0 {
                head[ip.at] &= 0xf0;
                head[ip.at + 1] &= 0x0f;
            }
        }
    }
    if let Some(Transport { at, protocol, .. }) = transport.filter(|of| of.piece != Piece::Later)
        && let Some((_, ports, sum_at, len)) = PROTOCOLS.iter().find(|of| of.0 == protocol)
    {
        // The checksum covers the ports and, through the pseudo-header, the addresses.
        let checksum = (CHECKSUM | ADDRESS | ports, *sum_at, *len);
        zero(head, at, &[(*ports, 0, 4), checksum]);
    }
}

/// A word-wise hash. It combines the two halves of a 128-bit product of words by XOR, so that every
/// input bit affects the result.
struct Digest(u64);

impl Digest {
    const KEY: u64 = 0x9e37_79b9_7f4a_7c15;

    fn new(wire_len: u32) -> Digest {
        Digest(u64::from(wire_len) ^ 0xd6e8_feb8_6659_fd93)
    }

    #[inline]
    fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(Digest::KEY);
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ Digest::KEY;
    }

    /// Hashes bytes; the last word is padded with zeros.
    #[inline]
    fn absorb(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
    }

    /// Hashes zeros in place of the frame's missing words.
    fn finish(mut self, held: usize, wire_len: u32) -> u64 {
        let missing = (wire_len as usize)
            .div_ceil(8)
            .saturating_sub(held.div_ceil(8));
        (0..missing).for_each(|_| self.word(0));
        self.word(Digest::KEY);
        self.0
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
