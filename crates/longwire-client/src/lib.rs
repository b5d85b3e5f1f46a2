//! HTTP/1.1 client for the control API of a run or a node, over a Unix socket or TCP, and types of
//! the node's API.
//!
//! [`Client`] blocks its thread; [`AsyncClient`] runs on the caller's tokio runtime.

mod address;
mod client;
mod connection;
mod error;
pub mod node;
#[cfg(test)]
mod tests;
pub mod time_limit;

pub use address::Address;
pub use client::{AsyncClient, Client, StreamEnd};
pub use connection::Response;
pub use error::{ClientError, OWNER_ONLY, Refusal};
pub use hyper::Method;

pub use crate::error::{ErrorBody, ProblemBody};
