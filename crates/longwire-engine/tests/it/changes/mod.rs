//! Changes of running links.

mod driven;
mod fifo;
mod in_turn;
mod properties;
mod rules;
