//! Tests installed packages.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

mod action;
mod containers;
mod distributions;
mod engines;
mod program;
mod release;

use crate::paths::{BuildPaths, VERSION};
use crate::run::{At, Result, clear, exists, finish, list};

/// Why a check did not pass.
#[derive(Debug)]
pub enum Stop {
    /// The check cannot run on this machine, for this reason.
    Skipped(String),
    /// The check found a fault.
    Failed(String),
}

impl From<String> for Stop {
    fn from(fault: String) -> Stop {
        Stop::Failed(fault)
    }
}

/// Outcome of a check.
pub type Checked = std::result::Result<(), Stop>;

/// A package check.
struct Check {
    name: &'static str,
    summary: &'static str,
    run: fn(&Context) -> Checked,
}

const CHECKS: [Check; 11] = [
    Check {
        name: "program",
        summary: "glibc, size, debug information, no paths of this machine",
        run: program::properties,
    },
    Check {
        name: "plugin",
        summary: "the archive's program with a plugin compiled with the archive's header",
        run: program::plugin,
    },
    Check {
        name: "reproducible",
        summary: "two builds from one program yield identical packages",
        run: release::reproducible,
    },
    Check {
        name: "sums",
        summary: "SHA256SUMS and the bill of materials, with third-party tools",
        run: release::sums_and_bill,
    },
    Check {
        name: "units",
        summary: "the systemd units and the tmpfiles entry, with systemd's tools",
        run: distributions::units,
    },
    Check {
        name: "deb",
        summary: "installed in an old Debian, used as root and as a user, removed",
        run: distributions::deb,
    },
    Check {
        name: "rpm",
        summary: "installed in a directory, compared with the deb, removed",
        run: distributions::rpm,
    },
    Check {
        name: "image",
        summary: "containerd, runc, podman, docker; as root and as a user; without namespaces",
        run: containers::image,
    },
    Check {
        name: "kube-image",
        summary: "the program in the Kubernetes image, run on the image's files",
        run: containers::kube_image,
    },
    Check {
        name: "action",
        summary: "the script of the GitHub Action, with a local release",
        run: action::install,
    },
    Check {
        name: "workflows",
        summary: "workflows, the action and shell scripts, with actionlint and shellcheck",
        run: action::lint,
    },
];

/// Arguments of a check.
#[derive(Clone, Debug)]
pub struct Context {
    /// Package paths.
    pub paths: BuildPaths,
    /// An empty directory for the check.
    pub scratch: PathBuf,
    /// The program with debug information, if available.
    pub binary: Option<PathBuf>,
    /// Whether to accept a package that was built only for this machine.
    pub trial: bool,
}

impl Context {
    /// Returns the emulator's package whose file name ends with this text.
    fn package(&self, ending: &str) -> Result<PathBuf> {
        self.found(ending, |path| !path.contains("longwire-kube"))
    }

    /// Returns the image for Kubernetes.
    fn kube_image(&self) -> Result<PathBuf> {
        self.found("-oci.tar", |path| path.contains("longwire-kube"))
    }

    fn found(&self, ending: &str, is_meant: fn(&str) -> bool) -> Result<PathBuf> {
        let found = list(&self.paths.out)?.into_iter();
        let mut found = found.filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(ending) && is_meant(&name)
        });
        match (found.next(), found.next()) {
            (Some(path), None) => Ok(path),
            (None, _) => Err(format!(
                "{}: no *{ending}; `cargo xtask package` builds it",
                self.paths.out.display()
            )),
            (Some(_), Some(other)) => Err(format!("more than one *{ending}: {}", other.display())),
        }
    }

    /// Unpacks the program's archive; returns its directory.
    fn unpacked(&self) -> Result<PathBuf> {
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--file"]);
        tar.arg(self.package("-linux-gnu.tar.gz")?);
        crate::run::run(tar.arg("--directory").arg(&self.scratch))?;
        let mut directories = list(&self.scratch)?.into_iter();
        let directory = directories.find(|path| path.join("bin/longwire").is_file());
        directory.ok_or_else(|| "the archive has no */bin/longwire".to_owned())
    }
}

/// Runs the checks with these names, or all checks, and prints the outcomes.
pub fn run(context: &Context, only: &[String]) -> Result<ExitCode> {
    let is_unknown = |name: &&String| CHECKS.iter().all(|check| check.name != *name);
    if let Some(name) = only.iter().find(is_unknown) {
        let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        return Err(format!("no check '{name}'; checks: {}", names.join(", ")));
    }
    let chosen = CHECKS.iter();
    let chosen = chosen.filter(|check| only.is_empty() || only.iter().any(|n| n == check.name));
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for check in chosen {
        println!("\n==== {}: {}", check.name, check.summary);
        let start = Instant::now();
        let result = run_one(context, check);
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                passed += 1;
                println!("---- {}: ok ({seconds:.1} s)", check.name);
            }
            // In CI, a skipped check is a failure.
            Err(Stop::Skipped(why)) if !is_ci() => {
                skipped += 1;
                println!("---- {}: SKIPPED: {why}", check.name);
            }
            Err(Stop::Skipped(why) | Stop::Failed(why)) => {
                failed += 1;
                println!("---- {}: FAILED: {why}", check.name);
            }
        }
    }
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn run_one(context: &Context, check: &Check) -> Checked {
    let scratch = context.paths.work.join("test").join(check.name);
    clear(&scratch)?;
    let context = Context {
        scratch: scratch.clone(),
        ..context.clone()
    };
    let outcome = (check.run)(&context);
    // Keep the files of a failed check for inspection.
    if !matches!(outcome, Err(Stop::Failed(_))) {
        std::fs::remove_dir_all(&scratch).at(&scratch)?;
    }
    outcome
}

fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Skips a check whose programs are not installed.
fn needs(programs: &[&str]) -> Checked {
    let missing = programs.iter().copied();
    let missing: Vec<&str> = missing.filter(|program| !exists(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Stop::Skipped(format!("needs {}", missing.join(", "))))
}

/// Skips a check that takes root, unless this process runs as root.
fn needs_root(purpose: &str) -> Checked {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0) {
        return Ok(());
    }
    Err(Stop::Skipped(format!("needs root for {purpose}")))
}

/// Fails unless a condition holds.
fn ensure(condition: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if condition { Ok(()) } else { Err(otherwise()) }
}

/// Fails unless a program prints the version of the packages.
fn ensure_version(program: &Path) -> Result<()> {
    let finished = finish(Command::new(program).arg("--version"))?;
    let is_right = finished.text == format!("longwire {VERSION}\n");
    ensure(finished.code == Some(0) && is_right, || finished.text)
}

/// Returns the path of a test script.
fn script(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join(name)
}
