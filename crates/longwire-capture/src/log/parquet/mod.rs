//! The log as Apache Parquet (<https://parquet.apache.org/docs/file-format/>): columns in row
//! groups, each compressed separately, with an index at the end of the file.
//!
//! Only one row group is in memory at a time.

mod column;
mod read;
mod write;

pub(super) use read::reader;
pub(super) use write::writer;

/// Metadata keys: the origin of arrivals, the earliest arrival, and the latest arrival or release,
/// all as nanoseconds of Unix time.
const EPOCH_KEY: &str = "longwire.epoch_ns";
const FIRST_KEY: &str = "longwire.first_ns";
const LAST_KEY: &str = "longwire.last_ns";

/// Rows per row group: a few megabytes in memory, and enough to compress well.
const GROUP_ROWS: usize = 128 * 1024;
