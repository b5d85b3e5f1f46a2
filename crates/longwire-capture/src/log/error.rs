//! The error of verdict logs.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use super::row::COLUMNS;

/// Error in writing or reading a log.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LogError {
    #[error("log '{}': name must end in .csv or .parquet", path.display())]
    Extension { path: PathBuf },
    #[error("log {}: {action}: {source}", path.display())]
    File {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error("{}: empty: the run was killed before its first record", path.display())]
    Empty { path: PathBuf },
    #[error(
        "{}: not a verdict log: missing {}; a log has the columns {}",
        path.display(), lacking(missing), COLUMNS.join(", ")
    )]
    Columns {
        path: PathBuf,
        missing: Vec<&'static str>,
    },
    /// `place` is a CSV line or a Parquet row, counted from 1.
    #[error("{}: {place}: {what}", path.display())]
    Row {
        path: PathBuf,
        place: String,
        what: String,
    },
    /// The file is not Parquet, or is truncated or damaged.
    #[error("{}: {action}: {source}", path.display())]
    Parquet {
        path: PathBuf,
        action: String,
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("{}: this build has no Parquet support; use CSV", path.display())]
    NoParquet { path: PathBuf },
}

/// Formats the list of missing columns.
fn lacking(missing: &[&str]) -> String {
    if missing.len() == COLUMNS.len() {
        "all columns".to_owned()
    } else {
        missing.join(", ")
    }
}

impl LogError {
    pub(super) fn file(path: &Path, action: &'static str, source: io::Error) -> LogError {
        let path = path.to_owned();
        LogError::File {
            path,
            action,
            source,
        }
    }

    pub(super) fn row(path: &Path, place: String, what: String) -> LogError {
        let path = path.to_owned();
        LogError::Row { path, place, what }
    }
}
