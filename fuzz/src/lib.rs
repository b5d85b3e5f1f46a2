//! Checks of the fuzz targets: functions of arbitrary bytes that panic on an error. They can be
//! called by libFuzzer, by the test over the seeds (`crates/longwire/tests/it/fuzz_seeds.rs`) and
//! in a debugger.

pub mod alter;
pub mod capture;
pub mod composition;
pub mod control;
pub mod feed;
pub mod frame;
pub mod options;
pub mod topology;
pub mod trace;
