//! Repository tasks: tests, continuous integration and fuzzing.
//!
//! `cargo xtask` lists the tasks. [`checks::CHECKS`] is the table of checks with their tiers;
//! [`tiers`] runs them.

use std::env;
use std::process::ExitCode;

mod bench;
mod book;
mod checks;
mod ci;
mod clients;
mod fuzz;
mod kube;
mod leftovers;
mod page;
mod python;
mod release;
mod runner;
mod test;
mod tiers;
mod tools;

use checks::{Check, When};
use runner::Runner;

const USAGE: &str = "\
cargo xtask TASK

  ci [CHECK…]          the checks of every commit
  ci --paths [CHECK…]  the checks whose files have changed since their last recorded pass
  full [OPTION…] [CHECK…]
                       every check, or the given ones, after installing programs; adds a row
                       per check to docs/long-runs.md
      --rest           skip checks that have passed at this commit
      --seconds N      duration of each fuzz target and of the soak (5)
  CHECK…               the given checks, regardless of changes

  busy RUNS            tests that read a clock, RUNS times, with a busy loop per core; recorded too
  fuzz SECONDS         every fuzz target for SECONDS
  test [ARGS…]         every test, or those that ARGS of `cargo test` select
  install              the programs that `ci` runs, from Debian and crates.io
  style                the style test alone
  spec-bench …         a measurement behind SPECIFICATION.md, built in release (--help lists them)
  kube-test control|pods …
                       longwire-kube with Kubernetes; arguments go to pytest
  page                 build the committed page of the live view, crates/longwire/page
  wheel                the Python package for old systems: target/python/dist
  package …            packages of the program in target/package/out (--help lists the options)
  package-test …       test these packages in Debian and in containers (--help)

checks
";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut runner = Runner::new();
    let ran = match words.as_slice() {
        ["test"] => {
            test::run_step(&mut runner);
            Ok(())
        }
        ["test", rest @ ..] => return test::run_chosen(rest),
        ["spec-bench", rest @ ..] => return bench::run_specification(rest),
        ["package", rest @ ..] => return crate::release::build_packages(rest),
        ["package-test", rest @ ..] => return crate::release::test_packages(rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{}", usage());
            return ExitCode::SUCCESS;
        }
        ["ci", "--paths", names @ ..] => {
            let chosen = checks::chosen(names, |when| matches!(when, When::Changed(_)));
            chosen.map(|checks| tiers::by_path(&mut runner, &checks))
        }
        ["ci", names @ ..] => {
            let chosen = checks::chosen(names, |when| when == When::Commit);
            chosen.map(|checks| tiers::run(&mut runner, &checks))
        }
        ["full", words @ ..] => full(&mut runner, words),
        words => task(&mut runner, words),
    };
    match ran {
        Ok(()) => runner.finish(),
        Err(problem) => {
            eprint!("{problem}\n\n{}", usage());
            ExitCode::from(2)
        }
    }
}

/// Runs a task, or the checks with these names.
fn task(runner: &mut Runner, words: &[&str]) -> Result<(), String> {
    match words {
        ["style"] => ci::style(runner),
        ["install"] => tools::install(runner, false),
        ["page"] => page::build(runner),
        ["wheel"] => python::build_release(runner),
        ["kube-test", "control", rest @ ..] => kube::test(runner, &kube::CONTROL, rest),
        ["kube-test", "pods", rest @ ..] => kube::test(runner, &kube::PODS, rest),
        ["fuzz", seconds] => {
            runner.seconds = parse_seconds(seconds)?;
            fuzz::run_targets(runner);
        }
        ["busy", runs] => {
            let wrong = |_| format!("'{runs}' is not a number of runs");
            test::run_busy(runner, runs.parse().map_err(wrong)?);
        }
        names => tiers::run(runner, &checks::chosen(names, |_| true)?),
    }
    Ok(())
}

/// Parses the arguments of `full` and runs it.
fn full(runner: &mut Runner, mut words: &[&str]) -> Result<(), String> {
    let mut rest = false;
    loop {
        match words {
            ["--rest", others @ ..] => {
                rest = true;
                words = others;
            }
            ["--seconds", seconds, others @ ..] => {
                runner.seconds = parse_seconds(seconds)?;
                words = others;
            }
            _ => break,
        }
    }
    tiers::full(runner, &checks::chosen(words, |_| true)?, rest);
    Ok(())
}

fn parse_seconds(text: &str) -> Result<u32, String> {
    let wrong = |_| format!("'{text}' is not a number of seconds");
    text.parse().map_err(wrong)
}

/// Returns the help: the tasks, and the checks with their tiers.
fn usage() -> String {
    let line = |Check {
                    name, help, when, ..
                }: &Check| {
        let tier = match when {
            When::Commit => "commit",
            When::Changed(_) => "paths",
            When::Full => "full",
        };
        format!("  {name:<13} {tier:<7} {help}\n")
    };
    USAGE.to_owned() + &checks::CHECKS.iter().map(line).collect::<String>()
}
