//! Stands for the Parquet format where the feature `parquet` is off: nothing
//! can be opened or created.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::error::LogError;
use super::row::Row;

/// A writer that cannot exist.
#[derive(Debug)]
pub(super) enum ParquetWriter {}

impl ParquetWriter {
    pub(super) fn new(_file: File, path: &Path) -> Result<ParquetWriter, LogError> {
        Err(LogError::NoParquet {
            path: path.to_owned(),
        })
    }

    pub(super) fn write(&mut self, _row: &Row, _epoch: i64, _path: &Path) -> Result<(), LogError> {
        match *self {}
    }

    pub(super) fn finish(self, _path: &Path) -> Result<(), LogError> {
        match self {}
    }
}

/// A reader that cannot exist.
#[derive(Debug)]
pub(super) enum ParquetReader {}

impl ParquetReader {
    pub(super) fn open(path: PathBuf) -> Result<ParquetReader, LogError> {
        Err(LogError::NoParquet { path })
    }

    pub(super) fn progress(&self) -> (u64, u64) {
        match *self {}
    }

    pub(super) fn span(&self) -> Option<(i64, i64)> {
        match *self {}
    }

    pub(super) fn next(&mut self) -> Option<Result<Row, LogError>> {
        match *self {}
    }
}
