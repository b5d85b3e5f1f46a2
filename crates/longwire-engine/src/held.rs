//! Frames in a managed queue, by number.

use alloc::collections::VecDeque;

use crate::frame_context::FrameBytes;
use crate::lane::FrameAccess;

/// Items by frame number, starting at 0. Frames leave nearly in order, so a deque with gaps
/// suffices. The head is stored inline, so a link with at most one queued frame touches no other
/// memory.
#[derive(Debug)]
pub struct HeldItems<T> {
    /// Number of the head, or of the next item while empty.
    first: u64,
    /// `Some` unless empty.
    head: Option<T>,
    /// Items after the head.
    rest: VecDeque<Option<T>>,
}

impl<T> HeldItems<T> {
    /// Creates an empty collection; the next number is 0.
    pub fn new() -> HeldItems<T> {
        HeldItems {
            first: 0,
            head: None,
            rest: VecDeque::new(),
        }
    }

    /// Adds the item with the next number.
    #[inline]
    pub fn push(&mut self, item: T) {
        match self.head {
            None => self.head = Some(item),
            Some(_) => self.rest.push_back(Some(item)),
        }
    }

    /// Adds an item whose number exceeds those of all stored items.
    pub fn push_numbered(&mut self, number: u64, item: T) {
        self.skip_to(number);
        self.push(item);
    }

    /// Sets the next item's number and skips the numbers before it.
    pub fn skip_to(&mut self, number: u64) {
        if self.is_empty() {
            self.first = number;
            self.rest.clear();
            return;
        }
        let between = number.saturating_sub(self.first + 1) as usize;
        self.rest.resize_with(between, || None);
    }

    /// Skips numbers; the collection must be empty.
    #[inline]
    pub fn skip(&mut self, numbers: u32) {
        debug_assert!(self.is_empty() && self.rest.is_empty(), "frames are held");
        self.first += u64::from(numbers);
    }

    /// Whether no item is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Returns the item with this number, if held.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        match number.checked_sub(self.first)? {
            0 => self.head.as_ref(),
            index => self.rest.get(index as usize - 1)?.as_ref(),
        }
    }

    /// Mutable version of [`HeldItems::get`].
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        match number.checked_sub(self.first)? {
            0 => self.head.as_mut(),
            index => self.rest.get_mut(index as usize - 1)?.as_mut(),
        }
    }

    /// Removes and returns the item with this number, if held.
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

/// Looks up a queued frame's bytes through its item.
#[derive(Debug)]
pub struct HeldBytes<'a, T, A> {
    /// Queued items.
    pub held: &'a HeldItems<T>,
    /// Returns an item's bytes.
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
