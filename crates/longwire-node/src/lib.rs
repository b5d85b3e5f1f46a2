//! Attaches links to a machine's containers, pods and namespaces on request.
//!
//! A [`Node`] manages attachments. Each attachment names a target and the options of a link, and
//! has a separate run of the engine while the target exists. When a target returns, such as a
//! restarted container, it gets its link again. Attachments are stored in a directory, from which a
//! starting node restores them.
//!
//! A node also runs networks: topologies, or this machine's part of them.
//!
//! ```no_run
//! use longwire_client::node::AttachmentSpec;
//! use longwire_control::node::Attachments;
//! use longwire_node::{Node, NodeConfig};
//!
//! let node = Node::start(NodeConfig::in_directory("/run/longwire/node"))?;
//! let spec: AttachmentSpec = serde_json::from_str(
//!     r#"{ "target": { "container": "web" }, "link": { "delay": "80ms" } }"#,
//! )?;
//! let (is_new, view) = node.put("web", &spec).map_err(|error| format!("{error:?}"))?;
//! println!("{is_new}: {:?}", view.interfaces);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod attached;
mod entry;
mod error;
mod files;
pub mod names;
mod networks;
mod node;
pub mod place;
mod pool;
pub mod process;
mod request;
pub mod store;

pub use error::{LinkFailure, NodeError};
pub use networks::{NetworkCommand, NetworkFiles, NetworkRun};
pub use node::{Node, NodeConfig, Notice};
