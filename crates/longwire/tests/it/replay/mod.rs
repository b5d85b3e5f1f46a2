//! `replay` through the program, over veth pairs: real captures, faults on the way,
//! choice of ports, and numbers of frames.
//!
//! Tests between devices need namespaces, and some need programs such as tshark.
//! Without them, tests print a message and pass, except in CI.

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
