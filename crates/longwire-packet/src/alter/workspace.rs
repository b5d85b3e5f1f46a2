//! A frame that is being altered, with space before it to grow.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// A frame that is being altered. Its memory is kept from frame to frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Workspace {
    buffer: Vec<u8>,
    /// Where the frame begins and ends in the buffer.
    start: usize,
    end: usize,
}

impl Workspace {
    /// Takes a frame in, with `room` bytes before it.
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

    /// Makes the frame longer, what is new all zeros, or shorter.
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

    /// Opens a gap of `len` bytes, `at` bytes into the frame.
    pub fn insert(&mut self, at: usize, len: usize) {
        if self.start < len {
            // Only when more was put in than room was asked for.
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

    /// Takes out `len` bytes, `at` bytes into the frame.
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
