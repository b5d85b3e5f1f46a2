//! All tests of this crate, in one binary to save link time.
#![allow(missing_docs, reason = "tests")]

mod common;

mod captures;
mod carriers;
mod composed;
mod counters;
mod deciding;
mod gap_frames;
mod lanes;
mod live;
mod live_frames;
mod loader;
mod moments;
mod overload;
mod own_ports;
mod pairs;
mod plugins;
mod replay;
mod replay_order;
mod sent_digest;
mod shards;
mod suggest;
mod sums;
mod traces;
