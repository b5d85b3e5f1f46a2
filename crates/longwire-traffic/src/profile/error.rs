//! Errors of profiles.

use longwire_engine::spec::SpecError;

use crate::generator::GeneratorError;
use crate::receive::ReceiveError;

#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProfileError {
    #[error("{step}: the rate is too high")]
    RateTooHigh { step: String },
    /// The frames of a trial cannot be generated.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// A model used by the profile is invalid.
    #[error(transparent)]
    Model(Box<SpecError>),
    #[error("cannot receive at {port}: {source}")]
    Receive {
        port: String,
        source: Box<ReceiveError>,
    },
    #[error("a trial has no outcome")]
    NoOutcome,
    #[error("interrupted; no result")]
    Interrupted,
    /// The run of a trial, or its receiver, failed.
    #[error("{0}")]
    Run(String),
}

impl From<SpecError> for ProfileError {
    fn from(error: SpecError) -> ProfileError {
        ProfileError::Model(Box::new(error))
    }
}
