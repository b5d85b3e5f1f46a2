//! Errors of networks that are built from a topology.

use longwire_engine::OptionError;

/// Errors of a network that is built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A rule that the classifier refuses.
    #[error("rule {number}: {reason}")]
    Rule {
        /// Its number, from 1.
        number: usize,
        /// The error.
        reason: String,
    },
    /// A link whose options are refused, as when a file of theirs has gone.
    #[error("link '{name}': {source}")]
    Link {
        /// Its name.
        name: String,
        /// The error.
        source: OptionError,
    },
    /// The caller asked to stop.
    #[error("interrupted before the network started")]
    Interrupted,
}
