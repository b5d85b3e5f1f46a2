//! The `longwire` program.

use std::process::ExitCode;

use clap::Parser;
use longwire::{Cli, Error};

fn main() -> ExitCode {
    // Wrong usage ends here: clap's message on stderr, exit code 2.
    let cli = Cli::parse();
    match longwire::run(&cli) {
        Ok(code) => code,
        // Whoever read our output has seen enough, as in `longwire models | head`.
        Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}
