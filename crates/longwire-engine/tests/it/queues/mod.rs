//! Queue disciplines: against second implementations of their papers, which
//! go event by event; late polling; conservation and order; and what they do
//! to TCP.

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
