//! `longwire import`: converts an Emulab script to a topology.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use longwire_capture::open;
use longwire_topology::ns;

use crate::Error;

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each node becomes a port packet:NODE named after it; replace these with ports of this
machine. Frames between two nodes are matched by both addresses, and take a path with the
fewest links.

Examples:
  longwire import net.ns > net.toml && longwire check net.toml")]
pub struct ImportArgs {
    /// Script for ns-2 or Emulab
    pub file: PathBuf,

    /// Maximum number of paths between nodes
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub paths: usize,
}

/// Maximum size of a script, in bytes.
const SCRIPT_MAX: u64 = 64 << 20;

/// Converts a script to a topology and writes it.
///
/// # Errors
/// If the script has an unsupported statement (the error names its line), or a file cannot be read
/// or written.
pub fn run(args: &ImportArgs) -> Result<ExitCode, Error> {
    let failed = Error::file(&args.file, "cannot be read");
    let mut text = String::new();
    let file = open::to_read(&args.file).map_err(&failed)?;
    let read = file.take(SCRIPT_MAX + 1).read_to_string(&mut text);
    if read.map_err(failed)? as u64 > SCRIPT_MAX {
        let file = args.file.display();
        return Err(Error::usage(format!(
            "{file}: larger than 64 MiB, the limit for a script"
        )));
    }
    let toml = ns::import(&text, args.paths).map_err(|problem| {
        let file = args.file.display();
        Error::usage(format!("{file}:{problem}"))
    })?;
    io::stdout().lock().write_all(toml.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
