//! Checks of the fuzz targets: functions of arbitrary bytes that panic on an error.
//! libFuzzer, the test over the seeds (`crates/longwire/tests/it/fuzz_seeds.rs`) and a
//! debugger can all call them.

pub mod alter;
pub mod capture;
pub mod composition;
pub mod control;
pub mod feed;
pub mod frame;
pub mod options;
pub mod topology;
pub mod trace;
