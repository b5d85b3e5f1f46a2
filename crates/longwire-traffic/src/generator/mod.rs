//! Frame generation from flows, sizes and arrivals.
//!
//! Headers and payload are prepared in a template. Only varying fields are written per frame, and
//! checksums derive from precomputed sums, so the cost does not depend on frame length.

mod addresses;
mod config;
mod error;
mod feed;
mod flows;
mod payload;
mod template;
mod together;

pub use addresses::{AddressRange, PortRange};
pub use config::GeneratorConfig;
pub use error::{FLOWS_MAX, GeneratorError, MACS_MAX, PAYLOAD_MAX};
pub use feed::GeneratorFeed;
pub use flows::{FlowConfig, FlowOrder, Protocol, TcpFlags, VlanTag};
pub use longwire_packet::MacAddress;
pub use payload::Payload;
pub use together::TogetherFeed;
