//! Errors in option values, and parsing of Ethernet addresses.

use alloc::format;
use alloc::string::String;

use crate::filter::values::mac;

/// Error in an option value, with the valid values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AlterError {
    message: String,
}

impl AlterError {
    pub(super) fn new(message: impl Into<String>) -> AlterError {
        AlterError {
            message: message.into(),
        }
    }

    /// Returns the error that `text` is not `what`.
    pub(crate) fn not(text: &str, what: &str) -> AlterError {
        AlterError::new(format!("'{text}' is not {what}"))
    }
}

pub(crate) fn one_mac(text: &str) -> Result<[u8; 6], AlterError> {
    mac(text).ok_or_else(|| AlterError::not(text, "an Ethernet address such as 02:00:00:00:00:01"))
}
