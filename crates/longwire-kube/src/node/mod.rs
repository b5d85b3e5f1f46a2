//! The API of `longwire node`, over its Unix socket.

mod client;
mod counters;

use longwire_client::node;
use serde_json::Value;

pub use client::{NodeClient, NodeError};
pub use counters::Counters;
pub use node::{AttachmentState, NetworkState};

/// An attachment. Its spec may be of a later version.
pub type AttachmentView = node::AttachmentView<Value>;

/// All attachments.
pub type AttachmentList = node::AttachmentList<Value>;

/// A network. Its spec may be of a later version.
pub type NetworkView = node::NetworkView<Value>;

/// All networks.
pub type NetworkList = node::NetworkList<Value>;
