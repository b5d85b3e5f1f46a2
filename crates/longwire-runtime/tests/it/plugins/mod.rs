//! Plugins in C, compiled here and driven through the engine in virtual time as
//! `simulate` does: the examples against their expected results, and every way
//! in which a plugin can fail.

mod batches;
mod bursty;
mod examples;
mod faults;
mod hooks;
mod live;
mod loading;
mod tools;
