//! Links that change while they run.

#[path = "../common/any_options.rs"]
mod any_options;

mod driven;
mod fifo;
mod properties;
mod rules;
