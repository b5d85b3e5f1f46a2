//! Probes: the contents of a generated frame by which its receiver identifies it and
//! its time of sending.
//!
//! A probe is at the beginning of a frame's payload. It has 18 bytes, exactly the space
//! that the shortest Ethernet frame (60 bytes without its frame check sequence) has
//! after the headers of IPv4 and UDP or ICMP:
//!
//! | bytes | what |
//! |---|---|
//! | 0–1 | check over the rest, which also distinguishes a probe from other payloads |
//! | 2–3 | stream |
//! | 4–9 | sequence number |
//! | 10–17 | time of sending, in nanoseconds since 1970 |
//!
//! Numbers are in network byte order. Of random payloads that are no probes, one in
//! 524,288 is accepted as one: the check is 16 bits wide, and the time is below 2^61
//! (in the year 2043).

use longwire_units::Nanos;

/// A stamp in the payload of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Number of its stream of frames; below [`Probe::STREAMS`].
    pub stream: u32,
    /// Its number in the stream, from 0; below [`Probe::SEQUENCES`].
    pub sequence: u64,
    /// When it was to be sent, since 1970.
    pub sent: Nanos,
}

/// Mixed into the check, so that zeros are no probe.
const MAGIC: u64 = 0x4c6f_6e67_7769_7265;

/// Times from this on are not written before 2043.
const SENT_END: u64 = 1 << 61;

impl Probe {
    /// How many bytes of payload it takes.
    pub const LEN: usize = 18;
    /// Number of distinguishable streams; a number above is taken modulo this.
    pub const STREAMS: u32 = 1 << 16;
    /// Sequence numbers of a stream; a number above is taken modulo this. At
    /// 20 million frames a second they last for 162 days.
    pub const SEQUENCES: u64 = 1 << 48;

    /// Writes it at the beginning of a payload, whose rest stays unchanged. Returns
    /// whether it fits: a payload shorter than [`Probe::LEN`] stays unchanged.
    #[inline]
    pub fn write(&self, payload: &mut [u8]) -> bool {
        let Some(place) = payload.first_chunk_mut::<{ Probe::LEN }>() else {
            return false;
        };
        let stream = u64::from(self.stream % Probe::STREAMS);
        let name = (stream << 48) | (self.sequence % Probe::SEQUENCES);
        let sent = self.sent.as_nanos();
        place[..2].copy_from_slice(&check(name, sent).to_be_bytes());
        place[2..10].copy_from_slice(&name.to_be_bytes());
        place[10..].copy_from_slice(&sent.to_be_bytes());
        true
    }

    /// Returns the probe at the beginning of a payload, if there is an undamaged one.
    #[inline]
    pub fn find(payload: &[u8]) -> Option<Probe> {
        let (written, rest) = payload.split_first_chunk::<2>()?;
        let (name, rest) = rest.split_first_chunk::<8>()?;
        let (sent, _) = rest.split_first_chunk::<8>()?;
        let (name, sent) = (u64::from_be_bytes(*name), u64::from_be_bytes(*sent));
        if sent >= SENT_END || check(name, sent) != u16::from_be_bytes(*written) {
            return None;
        }
        Some(Probe {
            stream: (name >> 48) as u32,
            sequence: name % Probe::SEQUENCES,
            sent: Nanos::from_nanos(sent),
        })
    }
}

/// Sixteen bits that depend on all others.
#[inline]
fn check(name: u64, sent: u64) -> u16 {
    (stir(stir(name ^ MAGIC) ^ sent) >> 48) as u16
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
#[inline]
fn stir(word: u64) -> u64 {
    let z = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
