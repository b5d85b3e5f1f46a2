//! Queue disciplines: comparison with independent event-driven implementations of their papers, idle
//! periods, and behaviour under TCP.

mod behaviour;
mod equality;
mod idle;
mod link;
mod oracle;
mod tcp;
mod traffic;
