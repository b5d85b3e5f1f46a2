//! Checksums: Internet checksum (RFC 1071), incremental update (RFC 1624), and CRC32c for SCTP (RFC
//! 9260, appendix A).

/// Folds a one's complement sum to 16 bits.
#[inline]
pub(crate) fn fold(mut sum: u64) -> u16 {
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// Returns the sum of 16-bit words, padding an odd last byte. The folded result is independent of
/// the word size used for adding (RFC 1071, section 2).
#[inline]
pub(crate) fn sum_words(bytes: &[u8]) -> u64 {
    // Two independent sums shorten the dependency chain.
    let (mut even, mut odd) = (0u64, 0u64);
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        if let [a, b, c, d, e, f, g, h] = eight {
            even += u64::from(u32::from_be_bytes([*a, *b, *c, *d]));
            odd += u64::from(u32::from_be_bytes([*e, *f, *g, *h]));
        }
    }
    for word in eights.remainder().chunks(2) {
        even += match word {
            [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
            [high] => u64::from(*high) << 8,
            _ => 0,
        };
    }
    even + odd
}

/// A change to checksummed bytes: the sum of ~m + m' over all changed words (RFC 1624, equation 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change(u64);

impl Change {
    pub const NONE: Change = Change(0);

    /// Replaces a 16-bit word.
    #[inline]
    pub fn word(&mut self, before: u16, after: u16) {
        self.0 += u64::from(!before) + u64::from(after);
    }

    /// Replaces 32 bits.
    #[inline]
    pub fn double(&mut self, before: u32, after: u32) {
        self.0 += u64::from(!before) + u64::from(after);
    }

    /// Replaces 128 bits.
    pub fn long(&mut self, before: u128, after: u128) {
        for shift in [0, 32, 64, 96] {
            self.double((before >> shift) as u32, (after >> shift) as u32);
        }
    }

    /// Replaces aligned bytes, given their sums before and after.
    pub fn sums(&mut self, before: u64, after: u64) {
        self.word(fold(before), fold(after));
    }

    /// Combines two changes.
    #[inline]
    pub fn add(&mut self, other: Change) {
        self.0 += other.0;
    }

    /// Whether nothing has changed.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the updated checksum: HC' = ~(~HC + ~m + m').
    #[inline]
    pub fn update(self, checksum: u16) -> u16 {
        !fold(u64::from(!checksum) + self.0)
    }
}

/// Reversed polynomial of CRC32c.
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// Contribution of a byte that is followed by 0 to 7 more bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let low = remainder & 1;
            remainder = (remainder >> 1) ^ (CASTAGNOLI * low);
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[behind - 1][byte];
            tables[behind][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        behind += 1;
    }
    tables
}

/// Returns the CRC32c of concatenated parts, using slicing-by-8 (Kounavis and Berry, "A Systematic
/// Approach to Building High Performance Software-Based CRC Generators", 2005).
pub fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut remainder = !0u32;
    for part in parts {
        let mut eights = part.chunks_exact(8);
        for eight in &mut eights {
            let mut low = [0; 4];
            low.copy_from_slice(&eight[..4]);
            let low = (u32::from_le_bytes(low) ^ remainder).to_le_bytes();
            remainder = 0;
            for (index, byte) in low.iter().chain(&eight[4..]).enumerate() {
                remainder ^= TABLES[7 - index][usize::from(*byte)];
            }
        }
        for byte in eights.remainder() {
            let index = (remainder as u8 ^ byte) as usize;
            remainder = remainder >> 8 ^ TABLES[0][index];
        }
    }
    !remainder
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors from RFC 3720, appendix B.4, and the usual check value.
    #[test]
    fn crc32c_matches_published_values() {
        let rising: [u8; 32] = core::array::from_fn(|n| n as u8);
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 32]]), 0x62a8_ab43);
        assert_eq!(crc32c(&[&rising]), 0x46dd_794e);
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[b"12", b"", b"3456789"]), 0xe306_9283);
    }

    /// Example from RFC 1071, section 3.
    #[test]
    fn checksums_match_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum_words(&bytes)), 0xddf2);
        assert_eq!(fold(sum_words(&[0xff; 65_535])), 0xff00);
    }

    /// Example from RFC 1624, section 4.
    #[test]
    fn updates_match_rfc_1624() {
        let mut change = Change::NONE;
        change.word(0x5555, 0x3285);
        assert_eq!(change.update(0xdd2f), 0x0000);
    }
}
