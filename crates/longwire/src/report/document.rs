//! The JSON of a report, with the program's own data about the run.

use std::env;
use std::path::Path;

use serde::Serialize;

use super::Verdict;

/// The report of a run, with its verdict and the command to repeat it.
#[derive(Debug, Serialize)]
pub struct Document<'a, T> {
    /// The report.
    #[serde(flatten)]
    report: &'a T,
    /// The verdict on the run.
    verdict: Verdict,
    /// The command line, as words.
    command: Vec<String>,
    /// The program's version.
    version: &'static str,
}

impl<T> Document<'_, T> {
    /// Adds the verdict and this process's command line to a report.
    pub fn new(report: &T, verdict: Verdict) -> Document<'_, T> {
        let mut words = env::args_os();
        let program = words.next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default();
        let words = words.map(|word| word.to_string_lossy().into_owned());
        Document {
            report,
            verdict,
            command: [program.to_string_lossy().into_owned()]
                .into_iter()
                .chain(words)
                .collect(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}
