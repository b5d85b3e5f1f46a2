//! The generator: frames made of flows, sizes and arrivals.
//!
//! A frame is never built from scratch. Headers and payload are ready in a template;
//! for each frame, the fields that differ are written into it, and the checksums
//! follow from sums computed in advance. So the cost of a frame does not depend on its
//! length.

mod addresses;
mod config;
mod error;
mod feed;
mod flows;
mod limits;
mod payload;
mod template;
mod together;

pub use addresses::{AddressRange, MacAddress, PortRange};
pub use config::GeneratorConfig;
pub use error::GeneratorError;
pub use feed::GeneratorFeed;
pub use flows::{FlowConfig, FlowOrder, Protocol, TcpFlags, VlanTag};
pub use limits::{FLOWS_MAX, MACS_MAX, PAYLOAD_MAX};
pub use payload::Payload;
pub use together::TogetherFeed;
