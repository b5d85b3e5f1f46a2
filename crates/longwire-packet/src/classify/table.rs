//! An open-addressing hash table from multi-word keys to one word.
//!
//! Rows contain their keys, so a lookup follows no pointers. A key's home is the first of four
//! rows, which are compared together: a branch per row would mispredict too often, and each
//! misprediction would wait for memory.
//!
//! Results never depend on the order of rows.
//!
//! The hash is not keyed: keys come from rules, which the user writes. Frames only cause lookups,
//! which are bounded by the longest run of rows.

use alloc::vec;
use alloc::vec::Vec;

/// Initial state and multiplier of the hash: digits of the golden ratio and pi.
const START: u64 = 0x9e37_79b9_7f4a_7c15;
const MULTIPLIER: u64 = 0x2436_a88a_85a3_08d3 | 1;

/// Initial number of rows.
const ROWS_MIN: usize = 8;

/// Rows compared together. Those of one-word keys fill a cache line.
const BUCKET: usize = 4;

/// Cache line in bytes and words.
const LINE: usize = 64;
const LINE_WORDS: usize = LINE / size_of::<u64>();

/// A table with keys of `key_words` words, not all zero.
#[derive(Clone, Debug)]
pub(super) struct Table {
    key_words: usize,
    /// Key and value per row, from `start` on; a zero value marks an empty row.
    words: Vec<u64>,
    /// First word of a cache line.
    start: usize,
    /// Number of rows (a power of two) minus one.
    last_row: usize,
    len: usize,
}

/// Mixes with a 128-bit product, folding both halves.
#[inline]
pub(super) fn hash(key: &[u64]) -> u64 {
    let mix = |state: u64, word: &u64| {
        let product = u128::from(state ^ word) * u128::from(MULTIPLIER);
        product as u64 ^ (product >> 64) as u64
    };
    key.iter().fold(START, mix)
}

impl Table {
    pub fn new(key_words: usize) -> Table {
        let mut table = Table {
            key_words,
            words: Vec::new(),
            start: 0,
            last_row: 0,
            len: 0,
        };
        table.clear(ROWS_MIN);
        table
    }

    /// Replaces the rows with `rows` empty ones, and returns the words of the old rows.
    fn clear(&mut self, rows: usize) -> Vec<u64> {
        let words = vec![0; rows * (self.key_words + 1) + LINE_WORDS - 1];
        // A copy may start elsewhere in a line, which only costs time.
        self.start = words.as_ptr().align_offset(LINE).min(LINE_WORDS - 1);
        self.last_row = rows - 1;
        core::mem::replace(&mut self.words, words)
    }

    /// Returns the words of the rows.
    #[inline(always)]
    fn rows(&self) -> &[u64] {
        self.words.get(self.start..).unwrap_or_default()
    }

    #[inline]
    fn row(&self, row: usize) -> (&[u64], u64) {
        let at = row * (self.key_words + 1);
        let row = &self.rows()[at..=at + self.key_words];
        (&row[..self.key_words], row[self.key_words])
    }

    fn set(&mut self, row: usize, key: &[u64], value: u64) {
        let at = self.start + row * (self.key_words + 1);
        self.words[at..at + self.key_words].copy_from_slice(key);
        self.words[at + self.key_words] = value;
    }

    #[inline]
    fn home(&self, key: &[u64]) -> usize {
        hash(key) as usize & self.last_row & !(BUCKET - 1)
    }

    /// Returns the address of a key's home row.
    #[inline]
    pub fn row_of(&self, key: &[u64]) -> *const u64 {
        let row = self.home(&key[..self.key_words.min(key.len())]);
        let rows = self.rows().get(row * (self.key_words + 1)..);
        rows.map_or(core::ptr::null(), <[u64]>::as_ptr)
    }

    /// Returns a key's row, or the empty row for it.
    #[inline]
    fn find(&self, key: &[u64]) -> (usize, u64) {
        let mut row = self.home(key);
        loop {
            let (there, value) = self.row(row);
            if value == 0 || there == key {
                return (row, value);
            }
            row = (row + 1) & self.last_row;
        }
    }

    /// Returns a key's value, or zero if there is none.
    #[inline(always)]
    pub fn get(&self, key: &[u64]) -> u64 {
        let key = &key[..self.key_words];
        match key {
            [word] => self.get_word(*word),
            key => self.find(key).1,
        }
    }

    /// Like `get`, for one-word keys such as IPv4 address pairs.
    #[inline(always)]
    pub fn get_word(&self, word: u64) -> u64 {
        const WORDS: usize = 2 * BUCKET;
        let mut row = self.home(&[word]);
        loop {
            let at = self.start + row * 2;
            let rows = self.words.get(at..at + WORDS);
            let Some(rows) = rows.and_then(|rows| rows.first_chunk::<WORDS>()) else {
                return 0;
            };
            let (mut found, mut is_full) = (0, true);
            for at in 0..BUCKET {
                let (there, value) = (rows[2 * at], rows[2 * at + 1]);
                // Empty rows have value zero.
                found |= if there == word { value } else { 0 };
                is_full &= value != 0;
            }
            if found != 0 || !is_full {
                return found;
            }
            row = (row + BUCKET) & self.last_row;
        }
    }

    /// Sets a key's value. Constant time, except when the table doubles.
    pub fn put(&mut self, key: &[u64], value: u64) {
        debug_assert!(value != 0, "zero is an empty row");
        let key = &key[..self.key_words];
        let (mut row, before) = self.find(key);
        if before == 0 {
            // At most 50 % load, so that few buckets are full.
            if (self.len + 1) * 2 > self.last_row + 1 {
                self.grow();
                row = self.find(key).0;
            }
            self.len += 1;
        }
        self.set(row, key, value);
    }

    fn grow(&mut self) {
        let width = self.key_words + 1;
        let (start, rows) = (self.start, self.last_row + 1);
        let before = self.clear(rows * 2);
        for row in before[start..].chunks_exact(width).take(rows) {
            let (key, value) = (&row[..width - 1], row[width - 1]);
            if value != 0 {
                let (row, _) = self.find(key);
                self.set(row, key, value);
            }
        }
    }

    /// Removes a key, and moves later rows up so that runs stay contiguous.
    pub fn remove(&mut self, key: &[u64]) {
        let (mut gap, value) = self.find(&key[..self.key_words]);
        if value == 0 {
            return;
        }
        self.len -= 1;
        let mut row = gap;
        loop {
            row = (row + 1) & self.last_row;
            let (key, value) = self.row(row);
            if value == 0 {
                break;
            }
            let home = self.home(key);
            // A row may fill the gap unless its home row lies after the gap.
            let from_home = row.wrapping_sub(home) & self.last_row;
            let from_gap = row.wrapping_sub(gap) & self.last_row;
            if from_home >= from_gap {
                let width = self.key_words + 1;
                let from = self.start + row * width;
                self.words
                    .copy_within(from..from + width, self.start + gap * width);
                gap = row;
            }
        }
        let at = self.start + gap * (self.key_words + 1);
        self.words[at + self.key_words] = 0;
    }

    /// Returns all values.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let rows = self.rows().chunks_exact(self.key_words + 1);
        let rows = rows.take(self.last_row + 1);
        rows.map(|row| row[row.len() - 1])
            .filter(|value| *value != 0)
    }
}
