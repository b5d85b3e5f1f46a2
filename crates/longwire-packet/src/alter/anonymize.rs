//! Prefix-preserving address anonymisation: Crypto-PAn (Fan, Xu, Ammar, Moon: "Prefix-preserving IP
//! address anonymization: measurement-based security evaluation and a new cryptography-based
//! scheme", Computer Networks 46(2), 2004).

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use crate::header::IpVersion;

/// Bits computed per batch; the cipher processes several blocks in parallel.
const BATCH: usize = 32;

/// A block of well-known addresses: its leading bits, their number, and whether the remaining bits
/// are preserved.
///
/// No bit is flipped up to and including the one where an address diverges from a block, so no
/// outside address is mapped into the block.
struct Block {
    start: u128,
    prefix: u32,
    /// Number of leading bits preserved in an address inside the block.
    kept: u32,
}

const fn block(start: u128, prefix: u32, kept: u32) -> Block {
    Block {
        start,
        prefix,
        kept,
    }
}

const WHOLE: u32 = 128;

/// This network, loopback, multicast and broadcast.
const BLOCKS4: [Block; 4] = [
    block(0, 8, WHOLE),
    block(0x7f << 120, 8, WHOLE),
    block(0xe << 124, 4, WHOLE),
    block(0xffff_ffff << 96, 32, WHOLE),
];

/// Solicited-node multicast, which embeds part of an address; other multicast; link-local;
/// unspecified and loopback.
const BLOCKS6: [Block; 4] = [
    block(0xff02_0000_0000_0000_0000_0001_ff00_0000, 104, 104),
    block(0xff00 << 112, 8, WHOLE),
    block(0xfe80 << 112, 10, 10),
    block(0, 127, WHOLE),
];

/// Cache entries per IP version; a power of two.
const CACHE: usize = 1 << 12;

/// Anonymisation with a result cache. Addresses are 128-bit numbers; IPv4 addresses occupy the
/// upper 32 bits.
#[derive(Clone)]
pub(super) struct Anonymizer {
    cipher: Aes128,
    /// Padding for the address bits that a cipher block omits.
    pad: u128,
    /// Whether to anonymise all addresses, as the published algorithm does: for each key, it is a
    /// bijection that preserves the length of the common prefix of any two addresses.
    plain: bool,
    /// Recent addresses and their replacements, by IP version.
    caches: [Vec<(u128, u128)>; 2],
}

impl fmt::Debug for Anonymizer {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anonymizer").finish_non_exhaustive()
    }
}

impl Anonymizer {
    pub fn new(key: &[u8; 32], plain: bool) -> Anonymizer {
        let (halves, _) = key.as_chunks::<16>();
        let cipher = Aes128::new(&Array(halves[0]));
        let mut pad = Array(halves[1]);
        cipher.encrypt_block(&mut pad);
        let mut anonymizer = Anonymizer {
            cipher,
            pad: u128::from_be_bytes(pad.0),
            plain,
            caches: Default::default(),
        };
        for version in [IpVersion::V4, IpVersion::V6] {
            let zero = (0, anonymizer.compute(version, 0));
            anonymizer.caches[version as usize] = vec![zero; CACHE];
        }
        anonymizer
    }

    /// Returns the replacement of an address.
    #[inline]
    pub fn replacement(&mut self, version: IpVersion, address: u128) -> u128 {
        let word = (address >> 64) as u64 ^ (address as u64).rotate_left(32);
        let place = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % CACHE;
        if self.caches[version as usize][place].0 != address {
            self.caches[version as usize][place] = (address, self.compute(version, address));
        }
        self.caches[version as usize][place].1
    }

    fn compute(&self, version: IpVersion, address: u128) -> u128 {
        let blocks = match version {
            IpVersion::V4 => &BLOCKS4,
            IpVersion::V6 => &BLOCKS6,
        };
        let common = |block: &Block| (block.start ^ address).leading_zeros();
        let kept = match blocks.iter().find(|block| common(block) >= block.prefix) {
            _ if self.plain => 0,
            Some(block) => block.kept,
            None => 1 + blocks.iter().map(common).max().unwrap_or(0),
        };
        let may_change = u128::MAX.checked_shr(kept).unwrap_or(0);
        address ^ self.flips(address, version.address_len() * 8) & may_change
    }

    /// Returns a mask of the bits to flip among the first `bits`. Each one depends on the key and
    /// the preceding address bits.
    fn flips(&self, address: u128, bits: usize) -> u128 {
        let mut flips = 0;
        for first in (0..bits).step_by(BATCH) {
            let mut blocks = [Array([0; 16]); BATCH];
            for (index, block) in blocks.iter_mut().enumerate() {
                // Avoids shifting by 128 for the first bit.
                let padded = u128::MAX >> (first + index);
                let input = address & !padded | self.pad & padded;
                *block = Array(input.to_be_bytes());
            }
            self.cipher.encrypt_blocks(&mut blocks);
            for (index, block) in blocks.iter().enumerate() {
                flips |= u128::from(block[0] >> 7) << (127 - first - index);
            }
        }
        flips
    }
}

#[cfg(test)]
#[path = "anonymize_tests.rs"]
mod tests;
