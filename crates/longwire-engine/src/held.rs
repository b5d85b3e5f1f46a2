//! Frames that a managed queue holds, by their numbers.

use alloc::collections::VecDeque;

use crate::frame_context::FrameBytes;
use crate::lane::FrameAccess;

/// Items by the numbers of their frames, from 0. Frames leave nearly in order, so the
/// items nearly form a queue. The head is stored inline: a link that holds at most one
/// frame at a time touches no other memory.
#[derive(Debug)]
pub struct HeldItems<T> {
    /// Number of the head, or of the next item if there is none.
    first: u64,
    /// `Some` unless nothing is held.
    head: Option<T>,
    /// Items after the head.
    rest: VecDeque<Option<T>>,
}

impl<T> HeldItems<T> {
    /// Holds nothing; the next item has the number 0.
    pub fn new() -> HeldItems<T> {
        HeldItems {
            first: 0,
            head: None,
            rest: VecDeque::new(),
        }
    }

    /// Adds the item of the next number.
    #[inline]
    pub fn push(&mut self, item: T) {
        match self.head {
            None => self.head = Some(item),
            Some(_) => self.rest.push_back(Some(item)),
        }
    }

    /// Adds the item of a frame that was offered in the meantime, later than all held
    /// items.
    pub fn push_numbered(&mut self, number: u64, item: T) {
        self.skip_to(number);
        self.push(item);
    }

    /// Makes `number` that of the next item. Frames in between are not held.
    pub fn skip_to(&mut self, number: u64) {
        if self.is_empty() {
            self.first = number;
            self.rest.clear();
            return;
        }
        let between = number.saturating_sub(self.first + 1) as usize;
        self.rest.resize_with(between, || None);
    }

    /// Passes the number of a frame that is not held, while nothing is held.
    #[inline]
    pub fn pass(&mut self) {
        debug_assert!(self.is_empty() && self.rest.is_empty(), "frames are held");
        self.first += 1;
    }

    /// Whether nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Returns the item of a number, if it is held.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        match number.checked_sub(self.first)? {
            0 => self.head.as_ref(),
            index => self.rest.get(index as usize - 1)?.as_ref(),
        }
    }

    /// As [`HeldItems::get`], to change the item.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        match number.checked_sub(self.first)? {
            0 => self.head.as_mut(),
            index => self.rest.get_mut(index as usize - 1)?.as_mut(),
        }
    }

    /// Removes the item of a number, if it is held.
    #[inline]
    pub fn take(&mut self, number: u64) -> Option<T> {
        let index = number.checked_sub(self.first)?;
        if index > 0 {
            return self.rest.get_mut(index as usize - 1)?.take();
        }
        let item = self.head.take()?;
        self.first += 1;
        while self.head.is_none()
            && let Some(next) = self.rest.pop_front()
        {
            self.first += u64::from(next.is_none());
            self.head = next;
        }
        Some(item)
    }

    /// Returns the number of items held.
    pub fn len(&self) -> usize {
        usize::from(self.head.is_some()) + self.rest.iter().flatten().count()
    }
}

/// Finds a queued frame's bytes through its item.
#[derive(Debug)]
pub struct HeldBytes<'a, T, A> {
    /// The items of the frames.
    pub held: &'a HeldItems<T>,
    /// Finds the bytes of an item.
    pub of: &'a A,
}

impl<T, A: FrameAccess<T>> FrameBytes for HeldBytes<'_, T, A> {
    fn bytes(&self, number: u64) -> &[u8] {
        match self.held.get(number) {
            Some(item) => self.of.bytes(item),
            None => &[],
        }
    }
}
