//! `longwire schema`: prints the JSON Schema of topology files.

use std::process::ExitCode;

use clap::Args;
use longwire_topology::schema::schema;

use crate::Error;
use crate::report::output::print_json;

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longwire schema > topology.schema.json   for editors that validate TOML")]
pub struct SchemaArgs {}

/// Writes the schema.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(_args: &SchemaArgs) -> Result<ExitCode, Error> {
    print_json(&schema())
}
