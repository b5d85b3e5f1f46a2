//! Checks for `longwire doctor`: what this machine supports, and what limits its accuracy.
//!
//! Each check examines one property and returns a finding: its state, cost and fix. A missing file,
//! for example in a container, is a finding, never an error.

mod cpu;
mod interfaces;
mod memory;
mod packets;
mod rights;
mod system;
mod timing;

use std::io::{self, Write};
use std::path::Path;

use longwire_units::count_of;
use serde::Serialize;

use crate::cli::Paint;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No problem.
    Ok,
    /// Reduced accuracy or function.
    Warn,
    /// A Longwire function is unavailable.
    Fail,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Checked property.
    pub topic: String,
    /// Severity.
    pub status: Status,
    /// State of the property.
    pub found: String,
    /// Effect on accuracy or function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    fn ok(topic: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding {
            topic: topic.into(),
            status: Status::Ok,
            found: found.into(),
            cost: None,
            fix: None,
        }
    }

    fn warn(topic: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding::warn_unless(false, topic, found)
    }

    fn fail(topic: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding {
            status: Status::Fail,
            ..Finding::ok(topic, found)
        }
    }

    /// Returns a warning; if `is_ok`, a finding without a problem, which ignores cost and fix.
    fn warn_unless(is_ok: bool, topic: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding {
            status: if is_ok { Status::Ok } else { Status::Warn },
            ..Finding::ok(topic, found)
        }
    }

    fn costs(mut self, cost: impl Into<String>) -> Finding {
        self.cost = (self.status != Status::Ok).then(|| cost.into());
        self
    }

    fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = (self.status != Status::Ok).then(|| fix.into());
        self
    }
}

/// Findings on one subject.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Subject of the group.
    pub name: &'static str,
    /// Findings in the group.
    pub findings: Vec<Finding>,
}

/// Examines the machine; takes about a second, mostly for measurements. `program` is the longwire
/// executable, for a trial run; `None` skips the trial.
pub fn examine(program: Option<&Path>) -> Vec<Group> {
    let group = |name, findings| Group { name, findings };
    let exec = program.map(rights::try_exec);
    let mut rights = rights::check(exec.as_ref());
    rights.extend(exec);
    let mut packets = packets::check();
    packets.push(packets::check_attach());
    vec![
        group("processor", cpu::check()),
        group("timing", timing::check()),
        group("memory", memory::check()),
        group("permissions", rights),
        group("packet input and output", packets),
        group("interfaces", interfaces::check()),
    ]
}

/// Returns the worst status.
pub fn worst(groups: &[Group]) -> Status {
    let findings = groups.iter().flat_map(|group| &group.findings);
    let worst = findings.map(|finding| finding.status).max();
    worst.unwrap_or(Status::Ok)
}

/// Writes the findings as text; if `quiet`, only problems.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(out: &mut impl Write, groups: &[Group], quiet: bool, paint: Paint) -> io::Result<()> {
    let is_shown = |finding: &&Finding| !quiet || finding.status != Status::Ok;
    let all = || groups.iter().flat_map(|group| &group.findings);
    let topics = all().filter(is_shown).map(|f| f.topic.chars().count());
    let width = topics.max().unwrap_or(0);
    for group in groups {
        let mut shown = group.findings.iter().filter(is_shown).peekable();
        if shown.peek().is_some() {
            writeln!(out, "{}", paint.bold(group.name))?;
        }
        for finding in shown {
            let mark = match finding.status {
                Status::Ok => paint.good("ok  "),
                Status::Warn => paint.warn("warn"),
                Status::Fail => paint.bad("fail"),
            };
            writeln!(out, "  {mark}  {:width$}  {}", finding.topic, finding.found)?;
            let indent = width + 10;
            if let Some(cost) = &finding.cost {
                writeln!(out, "{:indent$}{} {cost}", "", paint.dim("costs:"))?;
            }
            if let Some(fix) = &finding.fix {
                writeln!(out, "{:indent$}{} {fix}", "", paint.dim("fix:  "))?;
            }
        }
    }
    if quiet {
        return Ok(());
    }
    let of = |status| all().filter(|finding| finding.status == status).count();
    let (warned, failed) = (of(Status::Warn), of(Status::Fail));
    writeln!(
        out,
        "{} ok, {}, {}",
        of(Status::Ok),
        count_of(warned as u64, "warning"),
        count_of(failed as u64, "failure")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &'static str, findings: Vec<Finding>) -> Group {
        Group { name, findings }
    }

    fn written(groups: &[Group], quiet: bool) -> String {
        let mut out = Vec::new();
        assert!(write(&mut out, groups, quiet, Paint::PLAIN).is_ok());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn every_bad_finding_has_a_cost() {
        for finding in examine(None).iter().flat_map(|group| &group.findings) {
            assert!(!finding.found.is_empty(), "{finding:?}");
            let is_ok = finding.status == Status::Ok;
            assert!(is_ok || finding.cost.is_some(), "{finding:?}");
        }
    }

    #[test]
    fn the_table_shows_cost_and_fix_under_the_finding() {
        let finding = Finding::warn("clock", "hpet").costs("1 us a read");
        let findings = vec![finding.fix("tsc=reliable"), Finding::ok("pauses", "none")];
        let groups = [group("timing", findings)];
        assert_eq!(
            written(&groups, false),
            "timing\n  warn  clock   hpet\n                costs: 1 us a read\n                \
             fix:   tsc=reliable\n  ok    pauses  none\n1 ok, 1 warning, 0 failures\n"
        );
        assert_eq!(worst(&groups), Status::Warn);
    }

    #[test]
    fn quiet_shows_what_is_wrong() {
        let mixed = vec![
            Finding::ok("pauses", "none"),
            Finding::warn("clock", "hpet"),
        ];
        let groups = [
            group("memory", vec![Finding::ok("memory", "8 GiB")]),
            group("timing", mixed),
        ];
        assert_eq!(written(&groups, true), "timing\n  warn  clock  hpet\n");
        assert_eq!(written(&groups[..1], true), "");
    }
}
