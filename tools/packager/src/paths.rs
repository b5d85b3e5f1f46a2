//! Directories, and the timestamp of all packaged files.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use longwire_units::calendar;

use crate::run::{At, Result, text};

/// Version of the packages, which is that of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Directories, and the timestamp of all packaged files.
#[derive(Clone, Debug)]
pub struct BuildPaths {
    /// Cargo's target directory.
    pub target: PathBuf,
    /// Directory for intermediate files.
    pub work: PathBuf,
    /// Output directory for packages.
    pub out: PathBuf,
    /// Timestamp of all packaged files, in seconds since 1970.
    pub time: u64,
}

impl BuildPaths {
    /// Reads the environment. `out` is the output directory for packages.
    pub fn new(out: Option<PathBuf>) -> Result<BuildPaths> {
        let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        let target = root().join(target);
        let work = target.join("package");
        Ok(BuildPaths {
            out: out.unwrap_or_else(|| work.join("out")),
            time: time()?,
            target,
            work,
        })
    }

    /// Returns the path of a package.
    pub fn package(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }
}

/// Returns the repository root.
pub fn root() -> &'static Path {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    tools.and_then(Path::parent).unwrap_or(Path::new("."))
}

/// Returns `SOURCE_DATE_EPOCH`, or the time of the last commit.
fn time() -> Result<u64> {
    let seconds = match env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => seconds,
        Err(_) => {
            let mut log = Command::new("git");
            log.args(["log", "-1", "--format=%ct"]).current_dir(root());
            text(&mut log).map_err(|error| format!("{error}; set SOURCE_DATE_EPOCH"))?
        }
    };
    seconds.trim().parse().at("SOURCE_DATE_EPOCH")
}

/// Formats a time in UTC according to RFC 3339.
pub fn rfc3339(time: u64) -> String {
    let [year, month, day, hour, minute, second] = calendar(time);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        // Results of `date --utc --date=@…`.
        for (time, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(time), text);
        }
    }
}
