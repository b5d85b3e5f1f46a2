//! All tests of this crate, in one binary to save link time.
#![allow(missing_docs, reason = "tests")]

mod common;

mod carrier;
mod contract;
mod delay_line;
mod delay_line_in_place;
mod gap_frames;
mod net;
mod offload;
mod packet;
mod packet_traffic;
mod pcap_tools;
mod send_gone;
mod send_stamps;
mod tap;
mod tunnels;
mod xdp;
