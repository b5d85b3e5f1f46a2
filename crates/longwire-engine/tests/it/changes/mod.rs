//! Links that change while they run.

mod driven;
mod fifo;
mod properties;
mod rules;
