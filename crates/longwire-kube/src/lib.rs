//! Longwire on Kubernetes.
//!
//! The agent of each node turns the resources into attachments of `longwire node` on its
//! machine; the controller sums up their status and places networks.

pub mod api;
pub mod facts;
pub mod node;
pub mod plan;
