//! Receivers of a run's rows: files or observers.

use std::fmt;

use super::{LogError, LogWriter, Row};

/// A receiver of a log's rows.
pub trait RowSink: fmt::Debug + Send {
    /// Sets the origin of arrivals, in nanoseconds since 1970; call it before the first
    /// row.
    fn set_epoch(&mut self, epoch_ns: i64);

    /// Writes a row.
    ///
    /// # Errors
    /// If it cannot be written, or is contradictory.
    fn write(&mut self, row: &Row) -> Result<(), LogError>;

    /// Ends the log.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(self: Box<Self>) -> Result<(), LogError>;
}

impl RowSink for LogWriter {
    fn set_epoch(&mut self, epoch_ns: i64) {
        LogWriter::set_epoch(self, epoch_ns);
    }

    fn write(&mut self, row: &Row) -> Result<(), LogError> {
        LogWriter::write(self, row)
    }

    fn finish(self: Box<Self>) -> Result<(), LogError> {
        LogWriter::finish(*self)
    }
}
