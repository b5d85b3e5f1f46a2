//! Generator limits and errors.

/// Maximum number of flows; each takes 44 bytes.
pub const FLOWS_MAX: u64 = 1 << 20;

/// Maximum number of consecutive MAC addresses: they differ only in the last three octets, so that
/// none becomes a group address or changes its OUI.
pub const MACS_MAX: u64 = 1 << 24;

/// Maximum payload pattern length in bytes.
pub const PAYLOAD_MAX: usize = 65_536;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GeneratorError {
    #[error(
        "sizes of {size} bytes are too short: headers take {headers} bytes{}; the minimum is {least}",
        if *.probe { " and the probe 18" } else { "" }
    )]
    TooShort {
        size: u32,
        headers: u32,
        probe: bool,
        least: u32,
    },
    #[error(
        "{count} flows are not distinct: sources, destinations and ports allow only {possible}; \
         widen one of them"
    )]
    TooManyFlows { count: u64, possible: u128 },
    #[error("{count} consecutive MAC addresses are outside 1..{MACS_MAX}")]
    MacsRange { count: u64 },
    #[error("concurrent streams need at least one stream, and a rate for each stream")]
    NoStream,
    #[error("{count} flows are outside 1..{FLOWS_MAX}")]
    FlowsRange { count: u64 },
    #[error("sources are {sources}, but destinations are {destinations}; use one IP version")]
    Mixed {
        sources: &'static str,
        destinations: &'static str,
    },
    #[error("'{text}' is {wrong}; for example: {example}")]
    Text {
        text: String,
        wrong: &'static str,
        example: &'static str,
    },
}

/// Returns the error for text that cannot be parsed.
pub(super) fn refused(text: &str, wrong: &'static str, example: &'static str) -> GeneratorError {
    GeneratorError::Text {
        text: text.to_owned(),
        wrong,
        example,
    }
}
