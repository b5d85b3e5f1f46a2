//! Errors of profiles.

use longwire_engine::spec::SpecError;

use crate::generator::GeneratorError;
use crate::receive::ReceiveError;

/// An error of a profile.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProfileError {
    #[error("{step}: the rate is too high")]
    RateTooHigh { step: String },
    /// A trial asks for frames that cannot be generated.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// A model that the profile itself uses.
    #[error(transparent)]
    Model(Box<SpecError>),
    #[error("cannot receive at {port}: {source}")]
    Receive {
        port: String,
        source: Box<ReceiveError>,
    },
    #[error("a trial without an outcome")]
    NoOutcome,
    #[error("interrupted; no result")]
    Interrupted,
    /// The run of a trial, or its receiver, ended with an error.
    #[error("{0}")]
    Run(String),
}

impl From<SpecError> for ProfileError {
    fn from(error: SpecError) -> ProfileError {
        ProfileError::Model(Box::new(error))
    }
}
