//! The crate's integration tests in a single program, so that it is linked once.
#![allow(missing_docs, reason = "tests")]

mod common;

mod addresses;
mod attach;
mod attached_ports;
mod bad_input;
mod bridge;
mod cni;
mod control;
mod control_server;
mod corpus;
mod exec;
mod fuzz_seeds;
mod generate;
mod generated;
mod interfaces;
mod model_pages;
mod network;
mod option_pairs;
mod output;
mod page;
mod plot;
mod plugins;
mod presets;
mod receive;
mod recorded;
mod replay;
mod routers;
mod scenario_load;
mod shards;
mod simulate;
mod simulate_network;
mod simulate_router;
mod simulate_two_way;
mod verdict;
