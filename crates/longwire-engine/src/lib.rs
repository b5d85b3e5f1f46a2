//! The link emulation engine of Longwire.
//!
//! ```
//! use longwire_engine::{FrameMeta, Link, LinkId, LinkSpec, Nanos, NoLoader, Verdict};
//!
//! let spec: LinkSpec = "rate=10mbit delay=20ms".parse()?;
//! let mut link = Link::new(spec.build(&NoLoader)?, 1, LinkId(0));
//! let frame = FrameMeta { arrival: Nanos::ZERO, len: 1_250 };
//! let Verdict::Deliver(delivery) = link.offer(frame, &[]) else {
//!     panic!("an idle link without loss delivers");
//! };
//! // 10,000 bits at 10 Mbit/s, and the delay.
//! assert_eq!(delivery.release, Nanos::from_millis(21));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The engine is pure: it takes arrivals (time, length, borrowed header) and a seed, and returns
//! decisions and the time of its next call. It reads no clock, does no I/O, starts no threads and
//! logs nothing, so a live run can be recomputed offline to the nanosecond.
//!
//! Start reading at `decide_with_all` in `link.rs`, which shows every step of a frame through a
//! link. A [`Lane`] is a link with its queued frames; a [`Network`] joins lanes into paths.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// The names of the standard prelude that `core` lacks, and the macros of `alloc`.
mod prelude {
    pub(crate) use alloc::borrow::ToOwned;
    pub(crate) use alloc::boxed::Box;
    pub(crate) use alloc::string::{String, ToString};
    pub(crate) use alloc::vec::Vec;
    pub(crate) use alloc::{format, vec};
}

mod coin;
mod fifo;
pub mod frame_context;
mod held;
pub mod lane;
pub mod link;
pub mod link_spec;
pub mod loader;
mod losses;
mod medium;
pub mod models;
pub mod network;
mod origin;
pub mod parts;
pub mod presets;
pub mod release;
pub mod replay;
mod sent;
mod server;
pub mod spec;
pub mod trace;
pub mod verdict;

pub use frame_context::{FrameBytes, FrameContext};
pub use lane::{FrameAccess, Lane, LaneHost};
pub use link::{Link, LinkId, ReplacedParts, SequentialLink};
pub use link_spec::{LinkSpecError, OptionError, Setting};
pub use loader::{Hook, Loader, NoLoader, Plugin, PluginHints, TakePiece};
pub use longwire_packet::FrameMeta;
pub use longwire_units::{
    BitRate, Bytes, Correlation, Nanos, PacketRate, Packets, Probability, Speed,
};
pub use models::mtu::Fragments;
pub use models::queue::QueueLengths;
pub use network::{Crossing, EventPlace, Network, PathId, RemovedLink};
pub use parts::{Doubt, LinkChange, LinkConfig, LinkSpec, LinkState, PARTS, Part, all_models};
pub use release::ReleaseQueue;
pub use verdict::{Delivery, DropReason, Edits, Verdict};
