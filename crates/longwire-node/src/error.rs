//! Errors of a node.

use std::io;
use std::path::PathBuf;

use longwire_attach::TargetError;
use longwire_control::node::NodeRefusal;
use longwire_io::attach::AttachError;
use longwire_io::net::NetError;
use longwire_network::NetworkError;
use longwire_runtime::StartError;
use longwire_topology::Problem;

/// An error that prevents a node from starting.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The directory of attachments is unusable.
    #[error("cannot use the state directory {}: {source}", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// Underlying error.
        source: io::Error,
    },
    /// Another node uses the directory.
    #[error("another node uses {}", path.display())]
    InUse {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The threads could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Reason why a link is not attached.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LinkFailure {
    #[error(transparent)]
    Target(Box<TargetError>),
    #[error(
        "{description} shares the host's network, so the link would carry all host traffic; to \
         allow it, add --host-network (host_network in a request, host-network = true in a \
         topology); --to PREFIX selects a part of it"
    )]
    HostNetwork { description: String },
    #[error("process {pid} has exited, and its PID was reused")]
    OtherProcess { pid: u32 },
    #[error("no Ethernet interface in the namespace")]
    NoInterface,
    #[error("cannot store the attachment: {0}")]
    Store(io::Error),
    #[error(transparent)]
    Attach(Box<AttachError>),
    #[error(transparent)]
    Net(Box<NetError>),
    #[error(transparent)]
    Network(Box<NetworkError>),
    #[error(transparent)]
    Start(Box<StartError>),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Topology(Vec<Problem>),
}

impl LinkFailure {
    /// Returns whether a field of the request could permit the link.
    pub fn is_usage(&self) -> bool {
        matches!(self, LinkFailure::HostNetwork { .. })
    }

    /// Returns whether the traffic belongs to another link or to a network's port.
    pub fn is_taken(&self) -> bool {
        let LinkFailure::Attach(error) = self else {
            return false;
        };
        matches!(
            **error,
            AttachError::Taken { .. } | AttachError::OtherKind { .. }
        )
    }
}

impl From<LinkFailure> for NodeRefusal {
    fn from(failure: LinkFailure) -> NodeRefusal {
        match failure {
            LinkFailure::Store(error) => NodeRefusal::storage("the attachment", &error),
            failure if failure.is_taken() => NodeRefusal::Conflict(failure.to_string()),
            failure => NodeRefusal::Failed(failure.to_string()),
        }
    }
}

macro_rules! from {
    ($($error:ident => $variant:ident),*) => {
        $(impl From<$error> for LinkFailure {
            fn from(error: $error) -> LinkFailure {
                LinkFailure::$variant(Box::new(error))
            }
        })*
    };
}

from!(TargetError => Target, AttachError => Attach, NetError => Net, NetworkError => Network,
      StartError => Start);
