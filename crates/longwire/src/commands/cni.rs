//! `longwire cni`: the CNI plugin and its installation.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::report::output::print_line;
use crate::{Error, Globals};

/// Plugin name: the `type` in configurations, and the executable that runtimes start.
const PLUGIN: &str = "longwire-cni";

/// Maximum size of a configuration, in bytes.
const CONFIG_MAX: u64 = 16 << 20;

const EXAMPLES: &str = "\
Container runtimes run longwire-cni for each container of a network whose plugin list has
the type longwire-cni. The field \"link\" holds the link options; `longwire node` attaches
the link. docs/containers.md has the configuration.

Examples:
  longwire cni install
  longwire cni install --dir /usr/lib/cni
  longwire cni install --dir /host/opt/cni/bin --copy    from a container";

/// Arguments of `cni`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CniArgs {
    /// Install the plugin; without an action, run it
    #[command(subcommand)]
    pub action: Option<CniAction>,
}

/// An action of `cni`.
#[derive(Debug, Subcommand)]
pub enum CniAction {
    /// Install the plugin for container runtimes
    Install(CniInstallArgs),
}

/// Arguments of `cni install`.
#[derive(Debug, Args)]
pub struct CniInstallArgs {
    /// The runtime's plugin directory
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin")]
    pub dir: PathBuf,

    /// Copy the program instead of creating a symbolic link
    #[arg(long)]
    pub copy: bool,
}

/// Runs the plugin, or installs it.
///
/// # Errors
/// If not called by a runtime, or if the installation fails.
pub fn run(args: &CniArgs, globals: &Globals) -> Result<ExitCode, Error> {
    match &args.action {
        Some(CniAction::Install(args)) => install(args, globals),
        None if !is_called() => Err(Error::usage(
            "CNI_COMMAND is not set: container runtimes run this plugin; install it with `longwire \
             cni install`",
        )),
        None => Ok(run_plugin()?),
    }
}

/// Returns whether a container runtime called the program.
fn is_called() -> bool {
    std::env::var_os("CNI_COMMAND").is_some()
}

/// Returns whether the program was started under the plugin's name.
pub fn is_plugin(arguments: &[OsString]) -> bool {
    let name = arguments
        .first()
        .and_then(|path| Path::new(path).file_name());
    name.is_some_and(|name| name == PLUGIN)
}

/// Runs the plugin for one call of a container runtime.
///
/// # Errors
/// If stdout cannot be written.
pub fn run_plugin() -> io::Result<ExitCode> {
    // Nomad runs the plugin this way to read its version, in the format of the CNI project's
    // plugins.
    if !is_called() {
        eprintln!("{}", longwire_cni::about());
        return Ok(ExitCode::SUCCESS);
    }
    let variable = |name: &str| std::env::var(name).ok();
    let answer = longwire_cni::answer(&variable, || {
        let mut text = Vec::new();
        let read = io::stdin().take(CONFIG_MAX).read_to_end(&mut text);
        read.map(|_| text)
    });
    for line in &answer.log {
        print_line(format_args!("{PLUGIN}: {line}"));
    }
    let mut out = io::stdout().lock();
    out.write_all(answer.output.as_bytes())?;
    out.flush()?;
    Ok(if answer.is_success {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn install(args: &CniInstallArgs, globals: &Globals) -> Result<ExitCode, Error> {
    let program = std::env::current_exe()
        .and_then(fs::canonicalize)
        .map_err(Error::file(Path::new(PLUGIN), "cannot find this program"))?;
    fs::create_dir_all(&args.dir).map_err(Error::file(&args.dir, "cannot create the directory"))?;
    let target = args.dir.join(PLUGIN);
    // Replace the plugin atomically, because a runtime may start it concurrently.
    let temporary = args.dir.join(format!(".{PLUGIN}-{}", std::process::id()));
    let made = if args.copy {
        fs::copy(&program, &temporary).map(drop)
    } else {
        symlink(&program, &temporary)
    };
    let placed = made.and_then(|()| fs::rename(&temporary, &target));
    if placed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    placed.map_err(Error::file(&target, "cannot install the plugin"))?;
    if !globals.quiet {
        println!("installed {}", target.display());
    }
    Ok(ExitCode::SUCCESS)
}
