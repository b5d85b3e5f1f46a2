//! Links that change while they run.

mod driven;
mod fifo;
mod in_turn;
mod properties;
mod rules;
