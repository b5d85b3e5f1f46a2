//! The `longwire` program.

use std::process::ExitCode;

use longwire::commands::cni;
use longwire::report::output::{print_error, print_line};
use longwire::{Cli, Error};
use longwire_runtime::shutdown;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if cni::is_plugin(&arguments) {
        return cni::run_plugin().unwrap_or(ExitCode::FAILURE);
    }
    // Usage errors end here: clap's message on stderr, exit code 2.
    let cli = Cli::from_arguments(arguments).unwrap_or_else(|error| error.exit());
    let code = run(&cli);
    // Until here, only a plugin can call `exit`.
    shutdown::ends();
    code
}

fn run(cli: &Cli) -> ExitCode {
    match longwire::run(cli) {
        Ok(code) => code,
        // The reader has closed the output, for example in `longwire models | head`.
        Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(&error);
            if let Some(remedy) = error.remedy() {
                print_line(format_args!("fix: {remedy}"));
            }
            error.exit_code()
        }
    }
}
