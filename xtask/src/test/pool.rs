//! Runs tests concurrently, each in a separate process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::programs::{Group, Job, TIMED_OUT};
use crate::runner::target_dir;

/// Outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Passed,
    Ignored,
    Failed,
}

/// A test that has run.
#[derive(Debug)]
pub struct Done {
    pub name: String,
    pub suite: String,
    pub time: Duration,
    pub ending: Ending,
    /// Closing lines of suites that the test itself has run.
    pub closings: String,
}

/// Jobs that wait for a worker.
type Queue = Mutex<Vec<Job>>;

/// Runs all jobs, at most `threads` timed ones at a time. Timeless jobs may run at any time;
/// exclusive jobs run after the timed ones.
pub fn run(jobs: Vec<Job>, threads: usize, cores: usize) -> Vec<Done> {
    let mut groups = [Group::Timeless, Group::Timed, Group::Alone].map(|group| (group, Vec::new()));
    // Workers pop from the end.
    for job in jobs.into_iter().rev() {
        let group = groups.iter_mut().find(|(group, _)| *group == job.group);
        group.expect("every group is there").1.push(job);
    }
    let [timeless, timed, alone] = groups.map(|(_, jobs)| Mutex::new(jobs));
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for worker in 0..cores {
            let (queue, done) = (&timeless, &done);
            scope.spawn(move || drain(queue, &output(&format!("timeless-{worker}")), done));
        }
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let (queue, done) = (&timed, &done);
                scope.spawn(move || drain(queue, &output(&format!("timed-{worker}")), done))
            })
            .collect();
        for worker in workers {
            let _ = worker.join();
        }
        drain(&alone, &output("alone"), &done);
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the path for a worker's output. A file is used because processes that outlive a test
/// would keep a pipe open.
fn output(worker: &str) -> PathBuf {
    let folder = target_dir().join("tmp");
    let _ = fs::create_dir_all(&folder);
    folder.join(format!("test-output-{}-{worker}", process::id()))
}

fn drain(queue: &Queue, output: &Path, done: &Mutex<Vec<Done>>) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(job) = next() {
        let ended = run_job(job, output);
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.push(ended);
    }
    let _ = fs::remove_file(output);
}

/// Runs a test and prints its line, with its output if it failed.
fn run_job(mut job: Job, output: &Path) -> Done {
    let start = Instant::now();
    let ran = File::create(output).and_then(|file| {
        job.command.stdout(file.try_clone()?).stderr(file);
        job.command.stdin(process::Stdio::null()).status()
    });
    let time = start.elapsed();
    let text = String::from_utf8_lossy(&fs::read(output).unwrap_or_default()).into_owned();
    let seconds = time.as_secs_f64();
    let (ending, problem) = match ran {
        Ok(status) if status.success() && is_ignored(&text) => (Ending::Ignored, String::new()),
        Ok(status) if status.success() => (Ending::Passed, String::new()),
        Ok(status) if status.code() == Some(TIMED_OUT) => (
            Ending::Failed,
            format!("still running after {seconds:.0} s"),
        ),
        Ok(status) => (Ending::Failed, status.to_string()),
        Err(error) => (Ending::Failed, format!("cannot run: {error}")),
    };
    let mut lines = line(&job.name, ending) + "\n";
    if ending == Ending::Failed {
        lines += &format!("{text}---- {}: {problem}\n", job.name);
    }
    // Use a single call, so that the lines of several workers do not interleave.
    print!("{lines}");
    Done {
        closings: closings(&text),
        name: job.name,
        suite: job.suite,
        time,
        ending,
    }
}

/// Returns a test's line in libtest's format.
fn line(name: &str, ending: Ending) -> String {
    let word = match ending {
        Ending::Passed => "ok",
        Ending::Ignored => "ignored",
        Ending::Failed => "FAILED",
    };
    format!("test {name} ... {word}")
}

fn is_ignored(output: &str) -> bool {
    output.contains("0 passed; 0 failed; 1 ignored")
}

/// Returns the headlines of cargo, each with the closing lines that follow.
fn closings(output: &str) -> String {
    let mut found = String::new();
    let mut headline = None;
    for line in output.lines() {
        if line.trim_start().starts_with("Doc-tests ") {
            headline = Some(line);
        } else if line.starts_with("test result: ")
            && let Some(headline) = headline.take()
            && !line.contains(". 0 passed; 0 failed; 0 ignored")
        {
            found += &format!("{headline}\n{line}\n");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn job(name: &str, group: Group, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job {
            name: name.to_owned(),
            suite: String::new(),
            group,
            command,
        }
    }

    #[test]
    fn every_test_runs_once_and_those_alone_follow() {
        let jobs = vec![
            job("alone", Group::Alone, "true"),
            job(
                "ignored",
                Group::Timed,
                "echo '0 passed; 0 failed; 1 ignored'",
            ),
            job("failed", Group::Timed, "exit 3"),
            job("late", Group::Timed, &format!("exit {TIMED_OUT}")),
            job("passed", Group::Timeless, "true"),
        ];
        let done = run(jobs, 2, 1);
        let ending = |name: &str| {
            let mut of_name = done.iter().filter(|done| done.name == name);
            let ending = of_name.next().map(|done| done.ending);
            assert!(of_name.next().is_none(), "{name} ran twice");
            ending
        };
        assert_eq!(ending("passed"), Some(Ending::Passed));
        assert_eq!(ending("ignored"), Some(Ending::Ignored));
        assert_eq!(ending("failed"), Some(Ending::Failed));
        assert_eq!(ending("late"), Some(Ending::Failed));
        let place = |name: &str| done.iter().position(|done| done.name == name);
        assert!(place("alone") > place("failed") && place("alone") > place("late"));
    }

    #[test]
    fn closing_lines_of_documentation_are_kept() {
        let output = "   Doc-tests longwire_io\ntest result: ok. 2 passed; 0 failed; 0 ignored\n\
                      \n   Doc-tests longwire\ntest result: ok. 0 passed; 0 failed; 0 ignored\n";
        let kept = closings(output);
        assert!(
            kept.contains("longwire_io\ntest result: ok. 2 passed"),
            "{kept}"
        );
        assert_eq!(kept.lines().count(), 2, "{kept}");
    }
}
