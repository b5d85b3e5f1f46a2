//! Errors of a generator's configuration.

use super::limits::{FLOWS_MAX, MACS_MAX};

/// The error of a generator that cannot be made as configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GeneratorError {
    #[error(
        "sizes of {size} bytes are too short: headers take {headers} bytes{}; the least is {least}",
        if *.probe { " and the probe 18" } else { "" }
    )]
    TooShort {
        size: u32,
        headers: u32,
        probe: bool,
        least: u32,
    },
    #[error(
        "{count} flows cannot be distinguished: sources, destinations and ports given make {possible}; \
         widen one of them"
    )]
    TooManyFlows { count: u64, possible: u128 },
    #[error("{count} MAC addresses in a row are outside 1..{MACS_MAX}")]
    MacsRange { count: u64 },
    #[error("streams that are sent together need a rate each, and there must be one at least")]
    NoStream,
    #[error("{count} flows are outside 1..{FLOWS_MAX}")]
    FlowsRange { count: u64 },
    #[error("sources are of {sources} and destinations of {destinations}; both must be of one")]
    Mixed {
        sources: &'static str,
        destinations: &'static str,
    },
    #[error("'{text}' is {wrong}; write for example {example}")]
    Text {
        text: String,
        wrong: &'static str,
        example: &'static str,
    },
}

/// Returns the error of a text that cannot be parsed.
pub(super) fn refused(text: &str, wrong: &'static str, example: &'static str) -> GeneratorError {
    GeneratorError::Text {
        text: text.to_owned(),
        wrong,
        example,
    }
}
