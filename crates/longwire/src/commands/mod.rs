//! The commands, one file each: arguments and action.

pub mod check;
pub mod completions;
pub mod ctl;
pub mod doctor;
pub mod exec;
pub mod exec_args;
mod exec_commands;
mod exec_network;
mod exec_words;
pub mod generate;
mod generate_file;
pub mod import;
pub mod man;
pub mod model_pages;
pub mod models;
pub mod plot;
pub mod preset;
pub mod receive;
pub mod replay;
pub mod run;
mod run_network;
mod run_pair;
pub mod schema;
pub mod simulate;
mod simulate_network;
