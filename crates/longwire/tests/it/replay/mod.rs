//! `replay` through the program itself, over veth pairs: real captures, faults
//! on the way, what is sent where and how often.
//!
//! Tests between devices need namespaces, and some need programs such as
//! tshark. Where there are none they pass with a word, except in CI.

mod counts;
mod documented;
mod faults;
mod frames;
mod order;
mod ports;
mod real;
mod traffic;
mod virtual_time;
mod wire;
