//! `longwire schema`: prints the JSON Schema of topology files.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use longwire_topology::schema::schema;

use crate::Error;

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longwire schema > topology.schema.json   for editors that check TOML by a schema")]
pub struct SchemaArgs {}

/// Writes the schema.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(_args: &SchemaArgs) -> Result<ExitCode, Error> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &schema()).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}
