//! Errors in the format for runtimes (CNI specification 1.1, section 5, "Error").

use serde_json::json;

/// Version of errors if the version of the call is unknown.
const VERSION_LAST: &str = "1.1.0";

/// Error codes of the specification; codes from 100 on are specific to this plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The version is unsupported, or lacks the operation.
    Version = 1,
    /// Unknown field.
    Field = 2,
    /// The container's network namespace does not exist.
    Container = 3,
    /// Missing or invalid environment variable.
    Variables = 4,
    /// The configuration cannot be read.
    Read = 5,
    /// The configuration is not JSON, or a field has the wrong type.
    Decode = 6,
    /// Invalid configuration.
    Configuration = 7,
    /// The node does not answer; retry later.
    Later = 11,
    /// The plugin is not available.
    Unavailable = 50,
    /// The interface no longer has its link.
    NotAttached = 100,
    /// The node refuses the link.
    Refused = 101,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CniError {
    pub reason: Reason,
    /// Short message.
    pub message: String,
    /// Longer message; may be empty.
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

    /// Returns the JSON for stdout, with the version of the call if it is known.
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
