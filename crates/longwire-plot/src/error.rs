//! Plotting errors.

use std::io;
use std::path::{Path, PathBuf};

use longwire_capture::log::LogError;

/// Failure to create a figure or a page.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PlotError {
    /// The options contradict the inputs or each other: a usage error.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{}: cannot read: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "{}: neither a verdict log (--log FILE) nor a report (--report FILE, --json): {source}",
        path.display()
    )]
    Report {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: {what}", path.display())]
    Nothing { path: PathBuf, what: String },
    #[error("cannot create the figure: {0}")]
    Picture(String),
}

impl PlotError {
    /// Returns the error for an input without anything to draw.
    pub(crate) fn nothing(path: &Path, what: impl Into<String>) -> PlotError {
        PlotError::Nothing {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// Returns the error for an input that cannot be read.
    pub(crate) fn unreadable(path: &Path, source: io::Error) -> PlotError {
        PlotError::File {
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the error is in the options, not in the files.
    pub fn is_usage(&self) -> bool {
        matches!(self, PlotError::Usage(_))
    }
}
