//! Errors and exit codes of the program.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use longwire_attach::TargetError;
use longwire_capture::CaptureError;
use longwire_capture::log::LogError;
use longwire_client::ClientError;
use longwire_control::ControlError;
use longwire_io::PortError;
use longwire_io::attach::AttachError;
use longwire_io::net::NetError;
use longwire_network::NetworkError;
use longwire_node::{LinkFailure, NodeError};
use longwire_plot::PlotError;
use longwire_runtime::{RecordError, StartError, suggest};
use longwire_testbed::EnvironmentError;
use longwire_traffic::sockets::TrafficError;

use crate::remedies;

/// Exit code: the program or its run failed.
pub const EXIT_FAILED: u8 = 1;
/// Exit code: invalid command line.
pub const EXIT_USAGE: u8 = 2;
/// Exit code: fidelity below the requirement.
pub const EXIT_FIDELITY: u8 = 3;
/// Exit code: a nearly faithful run, where `faithful` was required.
pub const EXIT_NEARLY: u8 = 4;

/// An error that ends the program.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe the variants")]
pub enum Error {
    /// Refused before the start; the message states cause, place and remedy.
    #[error("{0}")]
    Usage(String),
    /// A port or capture file error.
    #[error("{}", suggest::port_error(.0))]
    Port(#[from] PortError),
    #[error("{}: {action}: {source}", path.display())]
    File {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    /// An error in the networks or commands of `exec`.
    #[error(transparent)]
    Exec(Box<EnvironmentError>),
    /// An error of a link at an interface in use.
    #[error(transparent)]
    Attach(Box<AttachError>),
    /// A target of `attach` was not found.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An error of a link at an existing target.
    #[error(transparent)]
    Link(#[from] LinkFailure),
    /// A network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Test traffic failed.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A node cannot start.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A verdict log error.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A figure error.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The run could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An error from a running Longwire or from the connection to it.
    #[error(transparent)]
    Control(#[from] ClientError),
    /// An error in this run's control API.
    #[error(transparent)]
    Serve(#[from] ControlError),
    /// Standard output or standard error failed.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// Work was started but could not be finished.
    #[error("{0}")]
    Failed(String),
}

impl From<AttachError> for Error {
    fn from(error: AttachError) -> Error {
        Error::Attach(Box::new(error))
    }
}

impl From<NetError> for Error {
    fn from(error: NetError) -> Error {
        let denied = error.io().map(io::Error::kind) == Some(io::ErrorKind::PermissionDenied);
        Error::Failed(if denied {
            format!("{error}; run as root, or enable user namespaces")
        } else {
            error.to_string()
        })
    }
}

impl From<CaptureError> for Error {
    fn from(error: CaptureError) -> Error {
        Error::Port(error.into())
    }
}

impl From<EnvironmentError> for Error {
    fn from(error: EnvironmentError) -> Error {
        match error {
            EnvironmentError::Port(error) => Error::Port(error),
            error => Error::Exec(Box::new(error)),
        }
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Error {
        match error {
            RecordError::Capture(error) => error.into(),
            RecordError::Log(error) => error.into(),
        }
    }
}

impl Error {
    /// Returns the error for a command refused before its start.
    pub(crate) fn usage(message: impl Display) -> Error {
        Error::Usage(message.to_string())
    }

    /// Returns the error for work that could not be finished.
    pub(crate) fn failed(message: impl Display) -> Error {
        Error::Failed(message.to_string())
    }

    /// Refuses a command with the message of the first condition that holds.
    pub(crate) fn refuse_first(conditions: &[(bool, &str)]) -> Result<(), Error> {
        let refused = conditions.iter().find(|(holds, _)| *holds);
        refused.map_or(Ok(()), |(_, why)| Err(Error::usage(why)))
    }

    /// Converts an I/O error to an error about a file.
    pub(crate) fn file(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::File {
            path: path.to_owned(),
            action,
            source,
        }
    }

    /// Returns a remedy that the message lacks, if any.
    pub fn remedy(&self) -> Option<String> {
        remedies::of(self)
    }

    /// Returns the exit code for this error.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Error::Usage(_)
            | Error::Port(PortError::Unknown { .. })
            | Error::Log(LogError::Extension { .. }) => EXIT_USAGE,
            Error::Link(failure) if failure.is_usage() => EXIT_USAGE,
            Error::Plot(error) if error.is_usage() => EXIT_USAGE,
            Error::Control(error) if error.is_usage() => EXIT_USAGE,
            Error::Serve(error) if error.is_usage() => EXIT_USAGE,
            Error::Exec(error) => error.exit_code(),
            _ => EXIT_FAILED,
        })
    }
}
