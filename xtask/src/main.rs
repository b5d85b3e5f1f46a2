//! Tasks of the repository: tests, continuous integration, fuzzing.
//!
//! `cargo xtask` lists the tasks. [`ci::run_steps`] shows the checks of every commit,
//! [`full::run_steps`] those of a release.

use std::env;
use std::process::ExitCode;

mod api;
mod bench;
mod book;
mod ci;
mod clients;
mod cni;
mod deny;
mod full;
mod fuzz;
mod kube;
mod leftovers;
mod memory;
mod package;
mod page;
mod python;
mod runner;
mod test;
mod tools;

use kube::KubeTest;
use runner::Runner;

const USAGE: &str = "\
cargo xtask TASK

  test [ARGS…]    every test; ARGS go to `cargo test` and choose some of them
  ci              the other checks of every commit
  full [SECONDS]  all checks that take longer, installing what they need; each fuzz target and
                  the soak run for SECONDS (5); adds to docs/long-runs.md
  install         the programs that `test` and `ci` run, from Debian and crates.io
  style           the style test alone
  loom            the concurrent parts of longwire-io under loom, interleaving by interleaving
  asan            the tests of longwire-io under AddressSanitizer (needs nightly)
  bench-tiny      every bench once, as small as it gets, to see that it runs
  spec-bench …    a measurement behind SPECIFICATION.md, built in release (--help lists them)
  book            docs/ with its generated pages, links checked, as HTML in target/book (needs mdbook)
  fuzz [SECONDS]  every fuzz target for so long (5), where nightly and cargo-fuzz are
  api             the control API with tools from PyPI: a generated client, schemathesis
  python          the Python package: built, installed, its types checked, tested
  clients         the clients in Node and Go: generated, their types checked, tested
  cni             the CNI plugin with the CNI project's own runtime
  kube            longwire-kube: clippy and its tests
  kube-test control|pods  longwire-kube with a real control plane; with kubelets and pods, too
  page            the page of the live view in crates/longwire/page, which is committed
  page-test       the page: current, types, lint, tests, and in a browser against real runs
  wheel           the Python package for old systems: target/python/dist
  package …       packages of the program in target/package/out (--help lists the options)
  package-test …  these packages where they are installed: Debian, containers (--help)
  deny            licences and origins of the dependencies
";

/// Default duration of each fuzz target, in seconds.
const FUZZ_SECONDS_DEFAULT: u32 = 5;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut runner = Runner::new();
    match words.as_slice() {
        ["test"] => test::run_step(&mut runner),
        ["test", rest @ ..] => return test::run_chosen(rest),
        ["ci"] => ci::run_steps(&mut runner),
        ["style"] => ci::style(&mut runner),
        ["loom"] => memory::loom(&mut runner),
        ["asan"] => memory::asan(&mut runner),
        ["spec-bench", rest @ ..] => return bench::run_specification(rest),
        ["bench-tiny"] => bench::run_tiny(&mut runner),
        ["api"] => api::run_steps(&mut runner),
        ["book"] => book::run_steps(&mut runner),
        ["python"] => python::run_steps(&mut runner),
        ["clients"] => clients::run_steps(&mut runner),
        ["cni"] => cni::run_steps(&mut runner),
        ["kube"] => kube::run_steps(&mut runner),
        ["kube-test", "control", rest @ ..] => kube::test(&mut runner, KubeTest::Control, rest),
        ["kube-test", "pods", rest @ ..] => kube::test(&mut runner, KubeTest::Pods, rest),
        ["page"] => page::build(&mut runner),
        ["page-test"] => {
            page::check(&mut runner);
            page::in_browser(&mut runner);
        }
        ["wheel"] => python::build_release(&mut runner),
        ["package", rest @ ..] => return package::build(rest),
        ["package-test", rest @ ..] => return package::test(rest),
        ["deny"] => deny::run_steps(&mut runner),
        ["fuzz"] => fuzz::run_targets(&mut runner, FUZZ_SECONDS_DEFAULT),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run_targets(&mut runner, seconds),
            Err(_) => return usage(&format!("'{seconds}' is not a number of seconds")),
        },
        ["full"] => full::run_steps(&mut runner, full::SECONDS_DEFAULT),
        ["full", seconds] => match seconds.parse() {
            Ok(seconds) => full::run_steps(&mut runner, seconds),
            Err(_) => return usage(&format!("'{seconds}' is not a number of seconds")),
        },
        ["install"] => tools::install(&mut runner, false),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [other, ..] => return usage(&format!("unknown task '{other}'")),
    }
    runner.finish()
}

fn usage(problem: &str) -> ExitCode {
    eprint!("{problem}\n\n{USAGE}");
    ExitCode::from(2)
}
