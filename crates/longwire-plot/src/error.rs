//! Errors of drawing a figure.

use std::io;
use std::path::PathBuf;

use longwire_capture::log::LogError;

/// Error of drawing a figure.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PlotError {
    /// The options contradict each other or the inputs: wrong usage.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{}: {action}: {source}", path.display())]
    File {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error(
        "{}: neither a verdict log nor the report of a run: {source}; logs come from \
         `simulate --log FILE`, reports from --report FILE or --json", path.display()
    )]
    Report {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: {what}", path.display())]
    Nothing { path: PathBuf, what: String },
    #[error("the picture cannot be made: {0}")]
    Picture(String),
}

impl PlotError {
    /// Returns whether other options, rather than other files, would help.
    pub fn is_usage(&self) -> bool {
        matches!(self, PlotError::Usage(_))
    }
}
