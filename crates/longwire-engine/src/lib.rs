//! The link emulation engine of Longwire.
//!
//! The engine is pure: it is given arrivals (a time, a length, a borrowed
//! header) and a seed, and it returns decisions and the time at which it
//! wants to be called again. It holds no clock, does no I/O, starts no thread
//! and logs nothing, so a live run can be recomputed offline to the
//! nanosecond.
//!
//! Start reading at [`link::Link::offer`]: that one function shows everything
//! that happens to a frame in a link, in order.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod alter;
pub mod bridge;
mod checksum;
pub mod classify;
mod coin;
mod edit;
pub mod emulator;
mod fifo;
pub mod filter;
mod flow;
pub mod fragment;
pub mod frame;
pub mod header;
mod held;
mod lines;
pub mod link;
pub mod loader;
mod losses;
mod medium;
pub mod models;
pub mod network;
pub mod options;
mod origin;
pub mod passing;
pub mod presets;
pub mod probe;
pub mod random;
pub mod release;
pub mod replay;
mod server;
pub mod spec;
mod special;
pub mod split;
pub mod trace;
pub mod units;
pub mod verdict;

pub use edit::repair_checksums;
pub use emulator::Emulator;
pub use frame::FrameMeta;
pub use link::{Doubt, Link, LinkChange, LinkConfig, LinkId, LinkState, Replaced};
pub use loader::{Hook, Loader, NoLoader, Plugin, PluginHints};
pub use network::{Network, PathId, Removed};
pub use options::{LinkOptions, OptionError};
pub use passing::{FrameBytes, Passing};
pub use release::ReleaseQueue;
pub use units::{BitRate, Bytes, Correlation, Nanos, PacketRate, Packets, Probability, Speed};
pub use verdict::{Corruption, Delivery, DropReason, Edits, Verdict};
