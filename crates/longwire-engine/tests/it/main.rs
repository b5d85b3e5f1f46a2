//! All integration tests of the crate in one binary, to link only once.
#![allow(missing_docs, reason = "tests")]

mod common;

mod changes;
mod composition;
mod corruption;
mod delay_correlation;
mod delay_distributions;
mod delay_files;
mod delay_schedules;
mod departure;
mod displacement;
mod doubts;
mod edits;
mod formats;
mod framing;
mod grammar;
mod json_lists;
mod link_spec;
mod lookahead;
mod loss_chains;
mod loss_content;
mod loss_marks;
mod loss_runs;
mod loss_schedules;
mod netem_trace;
mod network;
mod opportunities;
mod options;
mod presets;
mod quantities;
mod queues;
mod rates;
mod refusals;
mod registry;
mod release;
mod router;
mod schedule;
mod statistics;
mod streams;
mod tables;
