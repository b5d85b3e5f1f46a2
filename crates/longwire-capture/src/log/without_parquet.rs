//! Replaces the Parquet format where the feature `parquet` is off: no file can be
//! opened or created.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::error::LogError;
use super::row::Row;

pub(super) use self::{NoParquetReader as ParquetReader, NoParquetWriter as ParquetWriter};

/// A writer that cannot exist.
#[derive(Debug)]
pub(super) enum NoParquetWriter {}

impl NoParquetWriter {
    pub(super) fn new(_file: File, path: &Path) -> Result<NoParquetWriter, LogError> {
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
pub(super) enum NoParquetReader {}

impl NoParquetReader {
    pub(super) fn open(path: PathBuf) -> Result<NoParquetReader, LogError> {
        Err(LogError::NoParquet { path })
    }

    pub(super) fn progress(&self) -> (u64, u64) {
        match *self {}
    }

    pub(super) fn epoch(&self) -> Option<i64> {
        match *self {}
    }

    pub(super) fn span(&self) -> Option<(i64, i64)> {
        match *self {}
    }

    pub(super) fn next(&mut self) -> Option<Result<Row, LogError>> {
        match *self {}
    }
}
