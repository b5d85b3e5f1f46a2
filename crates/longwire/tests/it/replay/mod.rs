//! `replay` end to end over veth pairs: faults, port selection and frame counts.
//!
//! Tests between devices need namespaces, and some need dumpcap. Without these, tests print a
//! message and are skipped, except in CI.

mod counts;
mod documented;
mod faults;
mod receive;
mod virtual_time;
mod wire;
