//! Errors of requirements.

use longwire_runtime::suggest;
use longwire_units::UnitError;

/// The error of a requirement that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RequireError {
    #[error("nothing is required; write for example {example}")]
    Empty { example: &'static str },
    #[error("'{text}' has an empty condition; remove the comma next to it")]
    EmptyClause { text: String },
    #[error("'{clause}' compares nothing; write a name, one of < <= = >= > and a value")]
    NoComparison { clause: String },
    #[error("'{name}' is not known; {}`longwire exec --help` has all names", nearest(.name, .known))]
    UnknownName { name: String, known: String },
    #[error("'{clause}': {source}")]
    Value { clause: String, source: UnitError },
    #[error("'{clause}': '{value}' is no count; write a count, as in 5, or a share, as in 0.1%")]
    Count { clause: String, value: String },
    #[error("'{clause}': '{value}' is not a share; write a number and %, as in 0.1%")]
    Share { clause: String, value: String },
    #[error("'{clause}': only artifacts and drops are compared with a share of the frames")]
    NotShared { clause: String },
    #[error("'{clause}' is about the whole run, not about one link; leave '{link}.' out")]
    OfRun { clause: String, link: String },
    #[error("'{name}' is not known{}; known are {known}", suggest::aside(.name, .known))]
    UnknownReceived { name: String, known: String },
    #[error("'{clause}': {source}")]
    Received {
        clause: String,
        source: Box<RequireError>,
    },
}

/// Returns a question with the known names that are closest to a name, if any are close.
fn nearest(name: &str, known: &str) -> String {
    const SHOWN: usize = 3;
    match suggest::nearest(name, known.split(", "), SHOWN).as_slice() {
        [] => String::new(),
        names => format!("did you mean {}? ", suggest::either(names)),
    }
}
