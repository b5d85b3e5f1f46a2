//! Capture files (classic pcap and pcapng, compressed or not) and the verdict log.
//!
//! ```
//! use longwire_capture::{CaptureError, CaptureReader, CaptureWriter};
//! use longwire_engine::Nanos;
//!
//! # let path = std::env::temp_dir().join(format!("doc-{}.pcapng", std::process::id()));
//! # let path = path.to_str().expect("UTF-8");
//! let mut writer = CaptureWriter::create(path)?;
//! writer.write(Nanos::from_nanos(1_700_000_000_000_000_001), &[0; 60], 60)?;
//! writer.finish()?;
//!
//! let mut reader = CaptureReader::open(path)?;
//! while let Some(frame) = reader.next()? {
//!     assert_eq!(frame.stamp.as_nanos(), 1_700_000_000_000_000_001);
//!     assert_eq!(frame.wire_len, 60);
//! }
//! # std::fs::remove_file(path).expect("it was written");
//! # Ok::<(), CaptureError>(())
//! ```
//!
//! [`CaptureReader`] reads both formats, also compressed with gzip, zstd or lz4, on the caller's
//! thread or ahead of it on a separate thread. [`CaptureWriter`] writes both, with nanosecond
//! timestamps. `docs/decisions/0003-capture-files.md` explains why both are implemented here.
//! [`log`] contains the verdict log, as CSV or, with the feature `parquet`, as Parquet. [`open`]
//! opens files by user-supplied names.

pub mod files;
pub mod log;
pub mod open;
mod pcap;
pub mod state_file;
pub mod whole_file;

pub use pcap::{
    Batches, CAPTURED_MAX, CaptureError, CaptureFormat, CaptureReader, CaptureWriter, LeftOut,
    Packing, Record, RecordCounts, Step, complete_block, push_frame, same_file,
};
