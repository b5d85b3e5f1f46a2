//! Prefix-preserving address anonymisation: Crypto-PAn (Fan, Xu, Ammar, Moon: "Prefix-preserving IP
//! address anonymization: measurement-based security evaluation and a new cryptography-based
//! scheme", Computer Networks 46(2), 2004).

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// Bits computed per batch; the cipher processes several blocks in parallel.
const BATCH: usize = 32;

/// The published algorithm. For each key, it is a bijection that preserves the length of the common
/// prefix of any two addresses.
#[derive(Clone)]
pub struct CryptoPan {
    cipher: Aes128,
    /// Padding for the address bits that a cipher block omits.
    pad: u128,
}

impl fmt::Debug for CryptoPan {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CryptoPan").finish_non_exhaustive()
    }
}

impl CryptoPan {
    /// Creates the cipher from a key: 16 bytes for AES-128, then 16 for the padding.
    pub fn new(key: &[u8; 32]) -> CryptoPan {
        let (halves, _) = key.as_chunks::<16>();
        let cipher = Aes128::new(&Array(halves[0]));
        let mut pad = Array(halves[1]);
        cipher.encrypt_block(&mut pad);
        CryptoPan {
            cipher,
            pad: u128::from_be_bytes(pad.0),
        }
    }

    /// Anonymises an IPv4 address in host byte order.
    pub fn v4(&self, address: u32) -> u32 {
        address ^ (self.flips(u128::from(address) << 96, BATCH) >> 96) as u32
    }

    /// Anonymises an IPv6 address in host byte order.
    pub fn v6(&self, address: u128) -> u128 {
        address ^ self.flips(address, 128)
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

/// A block of well-known addresses: its leading bits, their number, and whether the remaining bits
/// are preserved.
///
/// No bit is flipped up to and including the one where an address diverges from a block, so no
/// outside address is mapped into the block.
struct Block<T> {
    start: T,
    prefix: u32,
    whole: bool,
}

impl<T> Block<T> {
    const fn whole(start: T, prefix: u32) -> Block<T> {
        Block {
            start,
            prefix,
            whole: true,
        }
    }

    const fn prefix(start: T, prefix: u32) -> Block<T> {
        Block {
            start,
            prefix,
            whole: false,
        }
    }
}

/// This network, loopback, multicast and broadcast.
const BLOCKS4: [Block<u32>; 4] = [
    Block::whole(0, 8),
    Block::whole(0x7f00_0000, 8),
    Block::whole(0xe000_0000, 4),
    Block::whole(0xffff_ffff, 32),
];

/// Solicited-node multicast, which embeds part of an address; other multicast; link-local;
/// unspecified and loopback.
const BLOCKS6: [Block<u128>; 4] = [
    Block::prefix(0xff02_0000_0000_0000_0000_0001_ff00_0000, 104),
    Block::whole(0xff00 << 112, 8),
    Block::prefix(0xfe80 << 112, 10),
    Block::whole(0, 127),
];

/// Cache entries per IP version; a power of two.
const CACHE: usize = 1 << 12;

/// Anonymisation with a result cache.
#[derive(Clone, Debug)]
pub(super) struct Anonymizer {
    pan: CryptoPan,
    /// Whether to anonymise all addresses, as the published algorithm does.
    plain: bool,
    cache4: Vec<(u32, Option<u32>)>,
    cache6: Vec<(u128, Option<u128>)>,
}

impl Anonymizer {
    pub fn new(key: &[u8; 32], plain: bool) -> Anonymizer {
        Anonymizer {
            pan: CryptoPan::new(key),
            plain,
            cache4: vec![(0, None); CACHE],
            cache6: vec![(0, None); CACHE],
        }
    }

    #[inline]
    pub fn v4(&mut self, address: u32) -> u32 {
        let place = address.wrapping_mul(0x9e37_79b9) as usize >> 20;
        match self.cache4[place % CACHE] {
            (known, Some(result)) if known == address => result,
            _ => {
                let result = self.compute4(address);
                self.cache4[place % CACHE] = (address, Some(result));
                result
            }
        }
    }

    #[inline]
    pub fn v6(&mut self, address: u128) -> u128 {
        let word = (address >> 64) as u64 ^ (address as u64).rotate_left(32);
        let place = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        match self.cache6[place % CACHE] {
            (known, Some(result)) if known == address => result,
            _ => {
                let result = self.compute6(address);
                self.cache6[place % CACHE] = (address, Some(result));
                result
            }
        }
    }

    fn compute4(&self, address: u32) -> u32 {
        let changed = self.pan.v4(address);
        let common = |start: &u32| (start ^ address).leading_zeros();
        let kept = self.kept_bits(&BLOCKS4, 32, common);
        let may_change = u32::MAX.checked_shr(kept).unwrap_or(0);
        address & !may_change | changed & may_change
    }

    fn compute6(&self, address: u128) -> u128 {
        let changed = self.pan.v6(address);
        let common = |start: &u128| (start ^ address).leading_zeros();
        let kept = self.kept_bits(&BLOCKS6, 128, common);
        let may_change = u128::MAX.checked_shr(kept).unwrap_or(0);
        address & !may_change | changed & may_change
    }

    /// Returns the number of leading bits to preserve; `common` returns the length of the prefix
    /// shared with the start of a block.
    fn kept_bits<T>(&self, blocks: &[Block<T>], bits: u32, common: impl Fn(&T) -> u32) -> u32 {
        if self.plain {
            return 0;
        }
        let mut inside = blocks.iter();
        if let Some(block) = inside.find(|block| common(&block.start) >= block.prefix) {
            return if block.whole { bits } else { block.prefix };
        }
        let kept = blocks.iter().map(|block| common(&block.start) + 1);
        kept.max().unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "anonymize_tests.rs"]
mod tests;
