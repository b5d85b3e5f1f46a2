//! Probes: payload contents that identify a generated frame and its send time.
//!
//! A probe is the first 18 bytes of a frame's payload, the space left after the IPv4 and UDP or
//! ICMP headers in a minimum Ethernet frame (60 bytes without FCS):
//!
//! | bytes | contents |
//! |---|---|
//! | 0–1 | check over bytes 2–17, which also identifies a probe |
//! | 2–3 | stream |
//! | 4–9 | sequence number |
//! | 10–17 | send time in nanoseconds since 1970 |
//!
//! Numbers are in network byte order. A random payload is taken for a probe with probability 1 in
//! 524,288: the check has 16 bits, and the time must be below 2^61 ns (in 2043).

use longwire_units::Nanos;

/// A probe in a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Stream number, below [`Probe::STREAMS`].
    pub stream: u32,
    /// Sequence number within the stream, from 0; below [`Probe::SEQUENCES`].
    pub sequence: u64,
    /// Scheduled send time since 1970.
    pub sent: Nanos,
}

/// Included in the check, so that all zeros are not a valid probe.
const MAGIC: u64 = 0x4c6f_6e67_7769_7265;

/// Exclusive upper bound of valid times, in 2043.
const SENT_END: u64 = 1 << 61;

impl Probe {
    /// Length in bytes.
    pub const LEN: usize = 18;
    /// Number of streams; larger numbers wrap around.
    pub const STREAMS: u32 = 1 << 16;
    /// Number of sequence numbers per stream before they wrap around: 162 days at 20 million
    /// frames/s.
    pub const SEQUENCES: u64 = 1 << 48;

    /// Writes the probe at the start of a payload. Returns `false`, without changes, if the payload
    /// is shorter than [`Probe::LEN`].
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

    /// Returns the probe at the start of a payload, if its check is valid.
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

/// Returns a 16-bit check over all other fields.
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
