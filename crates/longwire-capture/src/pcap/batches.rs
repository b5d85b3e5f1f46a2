//! The size of the pieces in which threads hand over parts of captures.

/// The size of the pieces that a thread which reads or writes a capture is given, or gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// 1 MiB at once in all: for a caller that needs the processor's cache for other data.
    Small,
    /// Several MiB: the fewest wake-ups of threads, each of which takes microseconds.
    Large,
}

impl Batches {
    /// Returns the number of bytes of a buffer that is written.
    pub(super) const fn buffer_len(self) -> usize {
        match self {
            Batches::Small => 256 * 1024,
            Batches::Large => 1024 * 1024,
        }
    }
}
