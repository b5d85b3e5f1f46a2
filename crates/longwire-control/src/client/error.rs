//! Why a running Longwire could not be asked.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::Address;
use crate::responses::{ErrorBody, Wrong};

/// The reason for which a socket refuses a user.
pub const ONLY_OWNER: &str = "only the user who started the run may ask it, and root (try sudo)";

/// The response to a request that the server refuses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The status, as in 400.
    #[serde(skip_deserializing)]
    pub status: u16,
    /// The reason.
    #[serde(flatten)]
    pub body: ErrorBody,
}

/// Errors of requests to a running Longwire.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ClientError {
    #[error("the control API cannot be asked: {0}")]
    System(io::Error),
    #[error("the token has characters that a header cannot carry; is this the right file?")]
    Token,
    /// No program listens there.
    #[error(
        "no Longwire answers at {address}: {reason}; start one with `longwire run network.toml \
         --control {address}`{TOKEN_HINT}, or say where it listens with --control or \
         LONGWIRE_CONTROL",
        TOKEN_HINT = token_hint(address)
    )]
    Nobody { address: Address, reason: String },
    /// The connection broke in the middle of an answer.
    #[error("{address} broke off in the middle of its answer: {reason}; it may have ended")]
    Cut { address: Address, reason: String },
    /// Too slow.
    #[error("{address} {what} within {seconds} s; the run may be stuck, or it is no Longwire")]
    Slow {
        address: Address,
        what: &'static str,
        seconds: u64,
    },
    /// Something else answered.
    #[error("what answers at {address} is no control API of this Longwire: {reason}")]
    Strange { address: Address, reason: String },
    /// The server says no.
    #[error("{0}")]
    Refused(Refused),
}

fn token_hint(address: &Address) -> &'static str {
    match address {
        Address::Unix(_) => "",
        Address::Tcp(_) => " --control-token-file FILE",
    }
}

impl ClientError {
    /// Returns the error of a response that is not Longwire's.
    pub fn strange(address: &Address, reason: impl Into<String>) -> ClientError {
        ClientError::Strange {
            address: address.clone(),
            reason: reason.into(),
        }
    }

    /// Whether the request itself was wrong, not its time or its place.
    pub fn is_usage(&self) -> bool {
        // RFC 9110, sections 15.5.9 and 6585, section 4: later it may be right.
        const LATER: [u16; 2] = [408, 429];
        match self {
            ClientError::Token => true,
            ClientError::Refused(refused) => {
                (400..500).contains(&refused.status) && !LATER.contains(&refused.status)
            }
            _ => false,
        }
    }
}

impl Refused {
    /// Returns everything that is wrong, with remedies, in one line.
    pub fn in_line(&self) -> String {
        if self.body.problems.is_empty() {
            return format!("refused: {}", self.body.error);
        }
        let problems: Vec<String> = self.body.problems.iter().map(Wrong::to_string).collect();
        format!("refused: {}", problems.join("; "))
    }
}

impl fmt::Display for Refused {
    /// The line alone where it says all; else everything that is wrong, a
    /// line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.body.problems.is_empty() {
            return write!(f, "refused: {}", self.body.error);
        }
        write!(f, "refused, and nothing was changed:")?;
        for wrong in &self.body.problems {
            write!(f, "\n  {wrong}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_wrong_is_told_with_its_field_and_remedy() {
        let text = r#"{"error":"set.a.rate: no; and 1 more","problems":[
            {"field":"set.a.rate","reason":"'fast' is no rate","remedy":"write 5mbit"},
            {"field":"","reason":"no link fits","remedy":""}]}"#;
        let refused: Refused = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(
            refused.to_string(),
            "refused, and nothing was changed:\n  set.a.rate: 'fast' is no rate; write 5mbit\n  \
             no link fits"
        );
    }

    #[test]
    fn what_may_be_right_later_is_no_wrong_usage() {
        let of = |status| {
            ClientError::Refused(Refused {
                status,
                ..Refused::default()
            })
        };
        assert!(of(400).is_usage() && of(404).is_usage() && of(403).is_usage());
        assert!(!of(429).is_usage() && !of(408).is_usage() && !of(500).is_usage());
    }
}
