//! `longwire key`: generates the key shared by a network's hosts.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use longwire_hosts::Key;

use crate::Error;

/// Arguments of `key`.
#[derive(Debug, Args)]
#[command(after_help = "\
The key allows sending frames into the network. Copy it to all hosts over a secure
channel, such as scp.

Examples:
  longwire key network.key      for key = \"network.key\" under [underlay]")]
pub struct KeyArgs {
    /// File to create, readable by its owner only; default: print the key
    pub file: Option<PathBuf>,
}

/// Generates a key.
///
/// # Errors
/// If the kernel provides no random bytes, the file exists, or it cannot be written.
pub fn run(args: &KeyArgs) -> Result<ExitCode, Error> {
    let key = Key::generate()?;
    match &args.file {
        Some(file) => key.write(file).map_err(Error::failed)?,
        None => writeln!(io::stdout(), "{}", key.to_hex())?,
    }
    Ok(ExitCode::SUCCESS)
}
