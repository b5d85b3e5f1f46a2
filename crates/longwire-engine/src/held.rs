//! Frames that a managed queue holds, by their numbers.

use alloc::collections::VecDeque;

use crate::passing::FrameBytes;

/// Items by the numbers of their frames, from 0: nearly a line, as frames
/// leave nearly in their order.
#[derive(Debug)]
pub(crate) struct HeldItems<T> {
    /// The number of the first.
    first: u64,
    items: VecDeque<Option<T>>,
}

impl<T> HeldItems<T> {
    pub fn new() -> HeldItems<T> {
        HeldItems {
            first: 0,
            items: VecDeque::new(),
        }
    }

    /// Adds the item of the next number.
    #[inline]
    pub fn push(&mut self, item: T) {
        self.items.push_back(Some(item));
    }

    pub fn get(&self, number: u64) -> Option<&T> {
        let index = number.checked_sub(self.first)?;
        self.items.get(index as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let index = number.checked_sub(self.first)?;
        self.items.get_mut(index as usize)?.as_mut()
    }

    #[inline]
    pub fn take(&mut self, number: u64) -> Option<T> {
        let index = number.checked_sub(self.first)?;
        let item = self.items.get_mut(index as usize)?.take();
        while let Some(None) = self.items.front() {
            self.items.pop_front();
            self.first += 1;
        }
        item
    }

    /// How many are held.
    pub fn len(&self) -> usize {
        self.items.iter().flatten().count()
    }
}

/// Where a caller finds the bytes of queued frames.
pub trait ItemBytes<T> {
    /// The frame's bytes, or none if they are not known.
    fn bytes<'a>(&'a self, item: &'a T) -> &'a [u8];
}

/// No bytes are known.
impl<T> ItemBytes<T> for () {
    fn bytes<'a>(&'a self, _item: &'a T) -> &'a [u8] {
        &[]
    }
}

/// Finds a queued frame's bytes through its item.
pub(crate) struct HeldBytes<'a, T, B> {
    pub held: &'a HeldItems<T>,
    pub of: &'a B,
}

impl<T, B: ItemBytes<T>> FrameBytes for HeldBytes<'_, T, B> {
    fn bytes(&self, number: u64) -> &[u8] {
        match self.held.get(number) {
            Some(item) => self.of.bytes(item),
            None => &[],
        }
    }
}
