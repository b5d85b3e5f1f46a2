//! Bodies of error responses.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Body of an error response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    /// The error in one line.
    pub error: String,
    /// All invalid fields of the request.
    #[serde(default)]
    pub problems: Vec<ProblemBody>,
}

/// An invalid field of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ProblemBody {
    /// JSON pointer (RFC 6901) to the value in the request's body; empty for the whole body.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Field or option, such as `set.adsl*.rate`.
    #[serde(default)]
    pub field: String,
    /// Reason.
    #[serde(default)]
    pub reason: String,
    /// Remedy; empty if unknown.
    #[serde(default)]
    pub remedy: String,
}

impl fmt::Display for ProblemBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.reason)?;
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}
