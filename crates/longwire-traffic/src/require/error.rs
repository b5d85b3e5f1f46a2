//! Errors of requirements.

use longwire_runtime::suggest;
use longwire_units::UnitError;

/// The error of a requirement that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RequireError {
    #[error("empty requirement; write for example {example}")]
    Empty { example: &'static str },
    #[error("'{text}' has an empty condition; remove the comma next to it")]
    EmptyClause { text: String },
    #[error("'{clause}' is not a comparison; write NAME, one of < <= = >= >, and a value")]
    NoComparison { clause: String },
    #[error("unknown grade '{name}'; did you mean '{close}'?")]
    UnknownGrade { name: String, close: &'static str },
    #[error("unknown name '{name}'; {}`longwire exec --help` lists all names", nearest(.name, .known))]
    UnknownName { name: String, known: String },
    #[error("'{clause}': {source}")]
    Value { clause: String, source: UnitError },
    #[error(
        "'{clause}': '{value}' is not a count; write a count such as 5, or a share such as 0.1%"
    )]
    Count { clause: String, value: String },
    #[error("'{clause}': '{value}' is not a share; write a percentage such as 0.1%")]
    Share { clause: String, value: String },
    #[error("'{clause}': only artifacts and drops can be compared with a share")]
    NotShared { clause: String },
    #[error("'{clause}' applies to the whole run, not to a link; remove '{link}.'")]
    OfRun { clause: String, link: String },
    #[error("unknown name '{name}'{}; known are {known}", suggest::aside(.name, .known))]
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
