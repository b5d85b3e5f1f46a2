//! Queue disciplines: comparison with independent event-driven implementations of their papers,
//! simultaneous frames, idle periods, and behaviour under TCP.

mod behaviour;
mod equality;
mod idle;
mod link;
mod oracle;
mod simultaneous;
mod tcp;
mod traffic;
