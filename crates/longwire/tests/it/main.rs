//! The tests of this crate in one program, so that it is linked once.
#![allow(missing_docs, reason = "tests")]

mod common;

mod addresses;
mod attach;
mod attached_ports;
mod bad_input;
mod bridge;
mod check_shards;
mod cni;
mod control;
mod control_server;
mod corpus;
mod exec;
mod fuzz_seeds;
mod generate;
mod generated;
mod interfaces;
mod live;
mod model_pages;
mod network;
mod option_pairs;
mod output;
mod page;
mod plot;
mod plugin_crashes;
mod plugins;
mod port_loss;
mod presets;
mod receive;
mod recorded;
mod recorded_network;
mod replay;
mod replay_receive;
mod routers;
mod scenario_load;
mod shards;
mod simulate;
mod simulate_network;
mod simulate_router;
mod simulate_two_way;
mod verdict;
