//! Batch size for passing parts of captures between threads.

/// Batch size of a thread that reads or writes a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// 1 MiB in total: for a caller that needs the CPU cache for other data.
    Small,
    /// Several MiB: the fewest wake-ups of threads, each of which takes microseconds.
    Large,
}

impl Batches {
    /// Returns the size of a write buffer in bytes.
    pub(super) const fn buffer_len(self) -> usize {
        match self {
            Batches::Small => 256 * 1024,
            Batches::Large => 1024 * 1024,
        }
    }
}
