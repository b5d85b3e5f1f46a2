//! A frame buffer with headroom.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// A frame being altered, in reusable memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Workspace {
    buffer: Vec<u8>,
    /// Bounds of the frame within the buffer.
    start: usize,
    end: usize,
}

impl Workspace {
    /// Loads a frame with `room` bytes of headroom.
    #[inline]
    pub fn load(&mut self, bytes: &[u8], room: usize) {
        let end = room + bytes.len();
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        self.start = room;
        self.end = end;
        self.buffer[room..end].copy_from_slice(bytes);
    }

    /// Truncates the frame, or extends it with zeros.
    pub fn resize(&mut self, len: usize) {
        let end = self.start + len;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        if end > self.end {
            self.buffer[self.end..end].fill(0);
        }
        self.end = end;
    }

    /// Inserts a gap of `len` bytes at offset `at`.
    pub fn insert(&mut self, at: usize, len: usize) {
        if self.start < len {
            // Not enough headroom was requested.
            let (start, end) = (self.start, self.end);
            self.buffer.resize(end + len, 0);
            self.buffer.copy_within(start..end, start + len);
            self.start += len;
            self.end += len;
        }
        let start = self.start;
        self.buffer.copy_within(start..start + at, start - len);
        self.start -= len;
    }

    /// Removes `len` bytes at offset `at`.
    pub fn remove(&mut self, at: usize, len: usize) {
        let start = self.start;
        self.buffer.copy_within(start..start + at, start + len);
        self.start += len;
    }
}

impl Deref for Workspace {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }
}

impl DerefMut for Workspace {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }
}
