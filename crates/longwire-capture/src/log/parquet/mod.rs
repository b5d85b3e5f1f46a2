//! The log as Apache Parquet (<https://parquet.apache.org/docs/file-format/>):
//! columns in row groups, each compressed on its own, with an index at the
//! end of the file.
//!
//! A row group holds the rows that are in memory at a time.

mod column;
mod read;
mod write;

pub(super) use read::reader;
pub(super) use write::writer;

/// Keys of the file's metadata: the time from which arrivals count, the earliest
/// arrival, and the latest arrival or release; in nanoseconds since 1970.
const EPOCH_KEY: &str = "longwire.epoch_ns";
const FIRST_KEY: &str = "longwire.first_ns";
const LAST_KEY: &str = "longwire.last_ns";

/// Rows of a row group: some megabytes in memory, and enough to compress well.
const GROUP_ROWS: usize = 128 * 1024;
