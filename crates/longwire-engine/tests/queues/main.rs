//! Queue disciplines: against second implementations of their papers, which
//! go event by event; late polling; conservation and order; and what they do
//! to TCP.

mod equality;
mod link;
mod oracle;
mod traffic;
