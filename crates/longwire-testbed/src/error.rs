//! Errors of the environment and its commands.

use std::io;
use std::process::ExitStatus;

use longwire_io::PortError;
use longwire_io::net::NetError;

/// Exit code for all other failures.
const EXIT_FAILED: u8 = 1;
/// Exit code that shells return for a command that is not executable.
const EXIT_NOT_EXECUTABLE: u8 = 126;
/// Exit code that shells return for a command that does not exist.
const EXIT_NOT_FOUND: u8 = 127;

/// Failure to create the environment, or to run a command in it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum EnvironmentError {
    #[error("command '{command}' {fault}")]
    NotFound {
        command: String,
        fault: &'static str,
    },
    #[error("cannot run '{command}': {source}; is it an executable file?")]
    NotExecutable { command: String, source: io::Error },
    #[error("cannot start '{command}': {source}")]
    Spawn { command: String, source: io::Error },
    #[error("the peer's command '{command}' ended before the link was used: {}", describe(*status))]
    PeerEnded { command: String, status: ExitStatus },
    #[error("stopped by {signal}")]
    Stopped { signal: nix::sys::signal::Signal },
    #[error("cannot create a user namespace: {source}. {advice}")]
    UserNamespace { source: io::Error, advice: String },
    #[error("cannot create a network namespace: {source}. {advice}")]
    Forbidden { source: NetError, advice: String },
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("cannot {action}: {source}")]
    System {
        action: &'static str,
        source: io::Error,
    },
    #[error("--uplink: {0}")]
    Uplink(String),
}

impl EnvironmentError {
    pub(crate) fn system(action: &'static str, source: impl Into<io::Error>) -> EnvironmentError {
        EnvironmentError::System {
            action,
            source: source.into(),
        }
    }

    /// Returns the program's exit code: 126, 127 or 128 + signal, like a shell's, otherwise
    /// 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            EnvironmentError::NotFound { .. } => EXIT_NOT_FOUND,
            EnvironmentError::NotExecutable { .. } => EXIT_NOT_EXECUTABLE,
            EnvironmentError::Stopped { signal } => 128 + *signal as u8,
            _ => EXIT_FAILED,
        }
    }
}

/// Describes the end of a command, as part of a message.
pub fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(127), _) => "exit code 127 (a command in it was not found)".into(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => match nix::sys::signal::Signal::try_from(number) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by signal {number}"),
        },
        (None, None) => "for an unknown reason".into(),
    }
}

/// Returns the exit code to pass on: the command's, or 128 + the signal that killed it.
pub fn exit_code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(EXIT_FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(exit_code_of(ExitStatus::from_raw(0)), 0);
        assert_eq!(exit_code_of(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(exit_code_of(ExitStatus::from_raw(libc::SIGKILL)), 137);
        assert_eq!(
            describe(ExitStatus::from_raw(libc::SIGTERM)),
            "killed by SIGTERM"
        );
    }
}
