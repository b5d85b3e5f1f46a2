//! The API of `longwire node`, over its Unix socket.

mod client;
mod views;

pub use client::{NodeClient, NodeError};
pub use views::{
    AttachmentList, AttachmentState, AttachmentView, Counters, NetworkList, NetworkState,
    NetworkView, Problem,
};
