//! `longwire import`: a topology from a script in the manner of Emulab's.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::Error;
use crate::topology::ns;

/// What `import` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Each node becomes a port of its name, packet:NODE; change what they open to
what the machine has. Frames between two nodes cross the fewest links there
are, as a path with both nodes' addresses for a matcher.

Examples:
  longwire import net.ns > net.toml && longwire check net.toml")]
pub struct ImportArgs {
    /// The script
    pub file: PathBuf,

    /// How many paths between nodes there may be
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub paths: usize,
}

/// Writes the topology of a script.
///
/// # Errors
/// If there is something in it that is not understood, by its line, or a file
/// cannot be read or written.
pub fn run(args: &ImportArgs) -> Result<ExitCode, Error> {
    let text = fs::read_to_string(&args.file).map_err(|source| Error::File {
        path: args.file.clone(),
        action: "cannot be read",
        source,
    })?;
    let toml = ns::import(&text, args.paths).map_err(|problem| {
        let file = args.file.display();
        Error::Usage(format!("{file}:{problem}"))
    })?;
    io::stdout().lock().write_all(toml.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
