//! Errors of requests, and the bodies of error responses.

use std::time::Duration;
use std::{fmt, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Address;

/// Reason why a socket refuses a user.
pub const OWNER_ONLY: &str = "accessible to root and to the user who started the run; try sudo";

/// An error response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// HTTP status code.
    pub status: u16,
    /// Response body.
    #[serde(flatten)]
    pub body: ErrorBody,
}

/// Error of a request to a run or a node.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ClientError {
    #[error("cannot start the HTTP client: {0}")]
    System(io::Error),
    #[error("the token has characters that are invalid in an HTTP header; check the token file")]
    Token,
    #[error(
        "no run listens at {address}: {}; start one with `longwire run network.toml --control \
         {address}`{}, or give its address with --control or LONGWIRE_CONTROL",
        reason(source),
        token_hint(address)
    )]
    Unreachable { address: Address, source: io::Error },
    #[error("{address} closed the connection: {reason}; the run may have ended")]
    ConnectionLost { address: Address, reason: String },
    #[error(
        "{address} {what} within {} s; the run may have hung, or the server is not Longwire",
        limit.as_secs()
    )]
    Timeout {
        address: Address,
        what: &'static str,
        limit: Duration,
    },
    #[error("the server at {address} is not Longwire, or is another version: {reason}")]
    Protocol { address: Address, reason: String },
    #[error("{0}")]
    Refused(Refusal),
}

fn token_hint(address: &Address) -> &'static str {
    match address {
        Address::Unix(_) => "",
        Address::Tcp(_) => " --control-token-file FILE",
    }
}

/// Describes a socket error, with a remedy if one is known.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such socket".to_owned(),
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::PermissionDenied => OWNER_ONLY.to_owned(),
        _ => error.to_string(),
    }
}

impl ClientError {
    /// Returns the error for a response that is not Longwire's.
    pub fn protocol(address: &Address, reason: impl Into<String>) -> ClientError {
        ClientError::Protocol {
            address: address.clone(),
            reason: reason.into(),
        }
    }

    pub(crate) fn timeout(address: &Address, what: &'static str, limit: Duration) -> ClientError {
        ClientError::Timeout {
            address: address.clone(),
            what,
            limit,
        }
    }

    /// Returns whether the request is invalid, so that a retry would fail too.
    pub fn is_usage(&self) -> bool {
        // A retry may succeed (RFC 9110, section 15.5.9; RFC 6585, section 4).
        const RETRIABLE: [u16; 2] = [408, 429];
        match self {
            ClientError::Token => true,
            ClientError::Refused(refusal) => {
                (400..500).contains(&refusal.status) && !RETRIABLE.contains(&refusal.status)
            }
            _ => false,
        }
    }
}

impl Refusal {
    /// Returns the error, or all problems with their remedies, as one line.
    pub fn line(&self) -> String {
        let ErrorBody { error, problems } = &self.body;
        if problems.is_empty() {
            return error.clone();
        }
        let problems: Vec<String> = problems.iter().map(ProblemBody::to_string).collect();
        problems.join("; ")
    }
}

impl fmt::Display for Refusal {
    /// Writes the error, or all problems, one per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.body.problems.is_empty() {
            return write!(f, "refused: {}", self.body.error);
        }
        write!(f, "refused; nothing was changed:")?;
        for problem in &self.body.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

/// Body of an error response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    /// The error, in one line.
    pub error: String,
    /// All invalid fields of the request.
    #[serde(default)]
    pub problems: Vec<ProblemBody>,
}

/// An invalid field of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ProblemBody {
    /// JSON pointer (RFC 6901) to the value in the request body; empty for the whole body.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// Field or option, such as `set.adsl*.rate`.
    #[serde(default)]
    pub field: String,
    /// Reason of the problem.
    #[serde(default)]
    pub reason: String,
    /// Remedy; empty if there is none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_a_retry_may_fix_are_not_usage_errors() {
        let of = |status| {
            ClientError::Refused(Refusal {
                status,
                ..Refusal::default()
            })
        };
        assert!(of(400).is_usage() && of(404).is_usage() && of(403).is_usage());
        assert!(!of(429).is_usage() && !of(408).is_usage() && !of(500).is_usage());
    }
}
