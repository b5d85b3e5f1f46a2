//! Continuity of TCP and RTP across rounds through a trace: connections get new initial sequence
//! numbers, and RTP streams continue theirs.

use alloc::collections::BTreeMap;

use longwire_units::Nanos;
use longwire_units::random::absorb;

use super::{About, Counts};
use crate::bytes::{array, array_mut, put_word};
use crate::checksum::{Change, sum_words};
use crate::edit;
use crate::flow::{Ends, ports};
use crate::header::protocol::{TCP, UDP};
use crate::header::{IpHeader, Options4, Piece, Transport};

/// Maximum number of RTP streams.
const STREAMS_MAX: usize = 4_096;

/// State from earlier rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Renumber {
    streams: BTreeMap<u64, RtpStream>,
    /// Duration of all completed rounds, and of the current round so far.
    before: Nanos,
    into: Nanos,
}

/// An RTP stream as observed in the first round.
#[derive(Clone, Copy, Debug, Default)]
struct RtpStream {
    packets: u64,
    /// Packets with a sequence number 1 to [`RtpStream::STEP_MAX`] above the previous one.
    following: u64,
    last_sequence: u16,
    /// Total advance since the first packet, in sequence numbers and in timestamps.
    sequence_span: u64,
    first_time: u32,
    time_span: u32,
}

impl RtpStream {
    /// Maximum sequence step that counts as loss. After a larger step, the packet belongs to
    /// another stream or is not RTP (compare RFC 3550, appendix A.1).
    const STEP_MAX: u16 = 100;

    fn new(last_sequence: u16, first_time: u32) -> RtpStream {
        RtpStream {
            packets: 1,
            last_sequence,
            first_time,
            ..RtpStream::default()
        }
    }

    fn learn(&mut self, sequence: u16, time: u32) {
        self.packets += 1;
        let step = sequence.wrapping_sub(self.last_sequence);
        if (1..=RtpStream::STEP_MAX).contains(&step) {
            self.following += 1;
            self.last_sequence = sequence;
            self.sequence_span += u64::from(step);
            self.time_span = time.wrapping_sub(self.first_time);
        }
    }

    /// Whether this looks like RTP: at least three packets, at least half of them in sequence.
    fn is_rtp(&self) -> bool {
        self.packets >= 3 && self.following * 2 >= self.packets
    }

    /// Returns the advance of sequence number and timestamp per round, including the step to the
    /// next round's first packet.
    fn step(&self) -> (u16, u32) {
        let time_step = u64::from(self.time_span) / self.sequence_span.max(1);
        let sequence = self.sequence_span.wrapping_add(1) as u16;
        (sequence, self.time_span.wrapping_add(time_step as u32))
    }
}

impl Renumber {
    pub fn next_round(&mut self) {
        self.before = self.before.saturating_add(self.into);
        self.into = Nanos::ZERO;
    }

    /// Renumbers a packet. Returns the change to bytes covered by its transport checksum.
    pub fn rewrite(
        &mut self,
        frame: &mut [u8],
        ip: &IpHeader,
        transport: &Transport,
        about: &About,
        counts: &mut Counts,
    ) -> Change {
        self.into = self.into.max(about.into_round);
        if transport.piece == Piece::Later {
            return Change::NONE;
        }
        let Some(ends) = Ends::of(frame, ip, transport) else {
            return Change::NONE;
        };
        let end = edit::packet_end(frame, ip).min(frame.len());
        let Some(segment) = frame.get_mut(transport.at..end) else {
            return Change::NONE;
        };
        let changed = match transport.protocol {
            TCP if about.round > 0 => self.tcp(segment, &ends, about.round),
            UDP if may_be_rtp(segment, transport) => self.rtp(segment, &ends, about.round, counts),
            _ => None,
        };
        changed.unwrap_or(Change::NONE)
    }

    /// Offsets a segment's sequence numbers by amounts derived from connection, direction and
    /// round.
    fn tcp(&self, segment: &mut [u8], ends: &Ends, round: u64) -> Option<Change> {
        const ACK: u8 = 0x10;
        const HEADER: usize = 20;
        let header = segment.first_chunk_mut::<HEADER>()?;
        let there = absorb(ends.there(), round) as u32;
        let back = absorb(ends.back(), round) as u32;
        let acknowledges = header[13] & ACK != 0;
        let options_end = usize::from(header[12] >> 4) * 4;
        let mut change = Change::NONE;
        add(&mut change, &mut header[4..8], there);
        if acknowledges {
            add(&mut change, &mut header[8..12], back);
        }
        if let Some(options) = segment.get_mut(HEADER..options_end)
            && !options.is_empty()
        {
            let before = sum_words(options);
            // Assumes timestamps in milliseconds, which nearly all systems use.
            let elapsed = (self.before.as_nanos() / 1_000_000) as u32;
            tcp_options(options, back, elapsed, acknowledges);
            change.sums(before, sum_words(options));
        }
        Some(change)
    }

    /// Advances an RTP packet's sequence number and timestamp beyond the previous rounds (RFC 3550,
    /// section 5.1).
    fn rtp(
        &mut self,
        segment: &mut [u8],
        ends: &Ends,
        round: u64,
        counts: &mut Counts,
    ) -> Option<Change> {
        let header = array_mut::<12>(segment, 8)?;
        let sequence = u16::from_be_bytes(array(header, 2)?);
        let time = u32::from_be_bytes(array(header, 4)?);
        let source = u32::from_be_bytes(array(header, 8)?);
        let key = absorb(ends.there(), source.into());
        if round == 0 {
            let room = self.streams.len() < STREAMS_MAX;
            match self.streams.get_mut(&key) {
                Some(stream) => stream.learn(sequence, time),
                None if room => {
                    self.streams.insert(key, RtpStream::new(sequence, time));
                }
                None => counts.rtp_unknown += 1,
            }
            return None;
        }
        let stream = self.streams.get(&key).filter(|stream| stream.is_rtp())?;
        let (sequence_step, time_step) = stream.step();
        let after = sequence.wrapping_add(sequence_step.wrapping_mul(round as u16));
        let mut change = Change::NONE;
        change.word(sequence, after);
        put_word(header, 2, after);
        let by = time_step.wrapping_mul(round as u32);
        add(&mut change, &mut header[4..8], by);
        Some(change)
    }
}

/// Adds to a 32-bit field and records the change.
fn add(change: &mut Change, field: &mut [u8], by: u32) {
    if let Some(field) = field.first_chunk_mut::<4>() {
        let before = u32::from_be_bytes(*field);
        let after = before.wrapping_add(by);
        change.double(before, after);
        *field = after.to_be_bytes();
    }
}

/// Offsets numbers in selective acknowledgements (RFC 2018) and timestamps (RFC 7323).
fn tcp_options(options: &mut [u8], back: u32, elapsed: u32, acknowledges: bool) {
    const SACK: u8 = 5;
    const TIMESTAMPS: u8 = 8;
    // The caller computes the change from sums before and after.
    let mut unused = Change::NONE;
    let mut next = 0;
    while let Some((at, option)) = Options4(options, next).next() {
        let kind = option[0];
        next = at + option.len();
        match (kind, options.get_mut(at + 2..next)) {
            (SACK, Some(body)) => body
                .chunks_exact_mut(4)
                .for_each(|edge| add(&mut unused, edge, back)),
            (TIMESTAMPS, Some(body)) if body.len() == 8 => {
                add(&mut unused, &mut body[..4], elapsed);
                if acknowledges {
                    add(&mut unused, &mut body[4..], elapsed);
                }
            }
            _ => {}
        }
    }
}

/// Whether a UDP datagram may be RTP: version 2, no RTCP type (RFC 5761, section 4), unprivileged
/// ports.
fn may_be_rtp(datagram: &[u8], transport: &Transport) -> bool {
    const FIRST_PORT: u16 = 1_024;
    let looks = matches!(datagram.get(8..10), Some([first, kind])
        if first >> 6 == 2 && !(192..=223).contains(kind));
    let at_start = Transport {
        at: 0,
        ..*transport
    };
    let high = |(source, destination)| source >= FIRST_PORT && destination >= FIRST_PORT;
    looks && ports(datagram, &at_start).is_some_and(high)
}
