//! Queue disciplines: comparison with independent event-driven implementations of their papers,
//! late polling, conservation and order, and behaviour under TCP.

mod behaviour;
mod conservation;
mod equality;
mod idle;
mod late;
mod link;
mod oracle;
mod simultaneous;
mod tcp;
mod traffic;
