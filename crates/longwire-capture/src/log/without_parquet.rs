//! Stub for the Parquet format without the feature `parquet`: no file can be opened or created.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::{FormatReader, FormatWriter, LogError};

pub(super) fn writer(_file: File, path: &Path) -> Result<Box<dyn FormatWriter>, LogError> {
    let path = path.to_owned();
    Err(LogError::NoParquet { path })
}

pub(super) fn reader(_file: File, path: PathBuf) -> Result<Box<dyn FormatReader>, LogError> {
    Err(LogError::NoParquet { path })
}
