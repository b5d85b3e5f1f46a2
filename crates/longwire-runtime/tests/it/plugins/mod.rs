//! C plugins, compiled by the tests and run by the engine in virtual time, as `simulate` does: the
//! examples, and every way in which a plugin can fail.

mod batches;
mod bursty;
mod examples;
mod faults;
mod hooks;
mod live;
mod loading;
mod tools;
