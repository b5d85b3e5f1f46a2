//! Chained CNI plugin that attaches a link to each container of a network.
//!
//! The plugin neither creates nor changes interfaces. It sends the namespace, the interface and the
//! link options to the node process, `longwire node`, and returns the previous plugins' result
//! unchanged.
//!
//! [`answer`] is the entire plugin. It implements versions 0.3.1 to 1.1 of the specification
//! (<https://www.cni.dev/docs/spec/>).

mod config;
mod error;
mod node;
mod operations;
mod options;
mod parameters;

use std::io;

use config::NetworkConfig;
use error::{CniError, Reason};
use operations::Call;
use parameters::Parameters;

/// Output of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Text for stdout: a result, an error, or nothing.
    pub output: String,
    /// Lines for stderr, which runtimes log.
    pub log: Vec<String>,
    /// Whether the exit code is 0.
    pub is_success: bool,
}

/// Runs a call. `variable` looks up environment variables; `input` is stdin.
pub fn answer(
    variable: &dyn Fn(&str) -> Option<String>,
    input: impl FnOnce() -> io::Result<Vec<u8>>,
) -> Answer {
    let mut log = Vec::new();
    let mut version = None;
    let carry_out = || -> Result<String, CniError> {
        let parameters = Parameters::read(variable)?;
        let input = input().map_err(|error| {
            let message = format!("cannot read the configuration from stdin: {error}");
            CniError::new(Reason::Read, message)
        })?;
        let config = NetworkConfig::read(&input)?;
        version = Some(config.version.clone()).filter(|version| !version.is_empty());
        let mut call = Call {
            parameters: &parameters,
            config: &config,
            log: &mut log,
        };
        call.run()
    };
    let done = carry_out();
    let is_success = done.is_ok();
    let output = done.unwrap_or_else(|error| error.to_json(version.as_deref()));
    Answer {
        output,
        log,
        is_success,
    }
}

/// Returns the versions of the plugin and of CNI, one per line.
pub fn about() -> String {
    format!(
        "CNI longwire-cni plugin v{}\nCNI protocol versions supported: {}",
        env!("CARGO_PKG_VERSION"),
        config::VERSIONS.join(", ")
    )
}
