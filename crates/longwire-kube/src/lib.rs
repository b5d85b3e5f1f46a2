//! Longwire on Kubernetes.
//!
//! The agent on each node turns resources into attachments of `longwire node`. The controller sums
//! up the status of resources and places networks.

pub mod agent;
pub mod api;
pub mod controller;
pub mod facts;
#[cfg(test)]
mod fake_api;
pub mod manifests;
mod metrics;
pub mod network;
pub mod node;
pub mod plan;
mod slice;
pub mod watch;
