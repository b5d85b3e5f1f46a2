//! `longwire completions`: shell completions generated from the command line's definition.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::Error;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longwire completions bash > ~/.local/share/bash-completion/completions/longwire
  longwire completions fish > ~/.config/fish/completions/longwire.fish
  longwire completions zsh > ~/.zfunc/_longwire")]
pub struct CompletionsArgs {
    /// Shell for which to print completions
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Writes the completions to stdout.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode, Error> {
    // Buffer the script: clap's generator panics on a closed output.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "longwire", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
