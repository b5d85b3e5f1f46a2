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

pub mod emulator;
mod fifo;
pub mod frame;
pub mod link;
pub mod models;
pub mod options;
pub mod random;
pub mod release;
pub mod spec;
pub mod units;
pub mod verdict;

pub use emulator::Emulator;
pub use frame::FrameMeta;
pub use link::{Link, LinkConfig, LinkId};
pub use options::{LinkOptions, OptionError};
pub use release::ReleaseQueue;
pub use units::{BitRate, Bytes, Nanos, Packets, Probability};
pub use verdict::{Delivery, DropReason, Verdict};
