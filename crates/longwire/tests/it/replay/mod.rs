//! `replay` through the program, over veth pairs: faults on the way, choice of
//! ports, and numbers of frames.
//!
//! Tests between devices need namespaces, and some need dumpcap. Without them, tests
//! print a message and pass, except in CI.

mod counts;
mod documented;
mod faults;
mod receive;
mod virtual_time;
mod wire;
