//! Errors as a runtime reads them (CNI specification 1.1, section 5, "Error").

use serde_json::json;

/// The version of errors about calls whose version is unknown.
const VERSION_LAST: &str = "1.1.0";

/// Reasons of errors, with the codes of the specification; those from 100 are of this
/// plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The version of the configuration, or the command in it, is not supported.
    Version = 1,
    /// A field of the configuration is unknown.
    Field = 2,
    /// The container's network namespace does not exist.
    Container = 3,
    /// A variable of the environment is missing or wrong.
    Variables = 4,
    /// The configuration cannot be read.
    Read = 5,
    /// The configuration is no JSON, or has other types.
    Decode = 6,
    /// The configuration is wrong.
    Configuration = 7,
    /// The node process does not answer; it may later.
    Later = 11,
    /// No link can be attached.
    Unavailable = 50,
    /// The interface has no link although one was added.
    NotAttached = 100,
    /// The node process cannot attach the link.
    Refused = 101,
}

/// An error that ends a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CniError {
    pub reason: Reason,
    /// A short message.
    pub message: String,
    /// A longer message; empty if there is nothing more.
    pub details: String,
}

impl CniError {
    pub fn new(reason: Reason, message: impl Into<String>) -> CniError {
        CniError {
            reason,
            message: message.into(),
            details: String::new(),
        }
    }

    pub fn with_details(self, details: impl Into<String>) -> CniError {
        CniError {
            details: details.into(),
            ..self
        }
    }

    /// Returns the object for stdout, in the version of the call if that is known.
    pub fn to_json(&self, version: Option<&str>) -> String {
        let mut object = json!({
            "cniVersion": version.unwrap_or(VERSION_LAST),
            "code": self.reason as u32,
            "msg": format!("longwire: {}", self.message),
        });
        if !self.details.is_empty() {
            object["details"] = self.details.clone().into();
        }
        object.to_string()
    }
}
