//! Errors of building a network from a topology.

use longwire_engine::OptionError;

/// Errors of building a network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The classifier refused a rule.
    #[error("rule {number}: {reason}")]
    Rule {
        /// The rule's number, from 1.
        number: usize,
        /// Why it was refused.
        reason: String,
    },
    /// The options of a link were refused; for example, a file was deleted.
    #[error("link '{name}': {source}")]
    Link {
        /// The link.
        name: String,
        /// Why they were refused.
        source: OptionError,
    },
    /// The caller stopped the construction.
    #[error("interrupted before the network started")]
    Interrupted,
}
