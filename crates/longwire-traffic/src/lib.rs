//! Traffic for network measurements: generator, receiver, socket flows, test profiles and
//! requirements on reports.
//!
//! ```
//! use longwire_traffic::{ARRIVALS, SIZES};
//! use longwire_runtime::Feed;
//! use longwire_traffic::generator::{FlowConfig, GeneratorConfig, GeneratorFeed, Payload};
//!
//! let mut feed = GeneratorFeed::new(GeneratorConfig {
//!     flows: FlowConfig::default(),
//!     sizes: SIZES.parse("imix")?.into(),
//!     arrivals: ARRIVALS.parse("constant")?.into(),
//!     rate: Some("1mpps".parse()?),
//!     payload: Payload::Zeros,
//!     probe: Some(0),
//!     count: Some(3),
//!     time: None,
//!     seed: 1,
//! })?;
//! let mut due_us = Vec::new();
//! feed.feed(10, &mut |frame| due_us.push(frame.due.as_micros_f64()))?;
//! assert_eq!(due_us, [0.0, 1.0, 2.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`arrivals`] and [`sizes`] are traffic models, registered like link models. [`generator`]
//! generates frames for [`longwire_runtime::replay`]; [`receive`] compares frames that arrive at a
//! port, or are read from a capture, with the frames sent. [`profile`] combines both into the tests
//! of RFC 2544, RFC 2889 and ITU-T Y.1564. [`sockets`] exchanges traffic between ordinary sockets
//! on two hosts.

pub mod arrivals;
pub mod generator;
pub mod profile;
pub mod receive;
pub mod require;
mod rounded;
pub mod sizes;
pub mod sockets;

use longwire_engine::spec::ModelInfo;

pub use arrivals::KIND as ARRIVALS;
pub use sizes::KIND as SIZES;

/// Returns every registered traffic model's kind name and description.
pub fn traffic_models() -> impl Iterator<Item = (&'static str, &'static ModelInfo)> {
    ARRIVALS.infos().chain(SIZES.infos())
}
