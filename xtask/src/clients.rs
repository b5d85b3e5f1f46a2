//! The Node and Go clients: generated from a run's OpenAPI document, and tested. Tools are
//! installed in `target/clients`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::runner::Shortfall::{Failed, Skipped};
use crate::runner::{
    Outcome, Runner, Shortfall, built, cargo, limited, make_folder, root, run, run_all, target_dir,
};

/// The generator of the Go client.
const OAPI_CODEGEN: &str = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";

/// Oldest supported versions, as (major, minor).
const NODE_MIN: (u32, u32) = (20, 19);
const GO_MIN: (u32, u32) = (1, 24);

/// Generates, checks and tests both clients.
pub fn run_steps(runner: &mut Runner) {
    let document = folder().join("openapi.json");
    runner.step("clients: OpenAPI document", || ask(&document));
    node(runner, &document);
    go(runner, &document);
}

/// Returns the folder of the installed tools.
pub fn folder() -> PathBuf {
    target_dir().join("clients")
}

/// Fetches a run's OpenAPI document.
fn ask(document: &Path) -> Outcome {
    make_folder(&folder())?;
    let mut ask = limited(&program());
    // The command runs in a separate network namespace, but finds a Unix socket by its path.
    let socket = folder().join("document.sock");
    ask.args(["exec", "--quiet", "--control"]).arg(&socket);
    ask.args(["--", "curl", "-sS", "--fail", "--output"]);
    ask.arg(document).arg("--unix-socket").arg(&socket);
    ask.arg("http://localhost/v1/openapi.json");
    run_all([cargo(["build", "--bin", "longwire"]), ask])
}

/// Returns the path of the program, which the clients read from an environment variable.
fn program() -> String {
    built(Path::new("longwire"))
}

fn node(runner: &mut Runner, document: &Path) {
    if let Err(why) = needs_node() {
        runner.step("clients: Node", || Err(why));
        return;
    }
    let folder = folder().join("node");
    let npm = |arguments: &[&str]| {
        let mut npm = limited("npm");
        npm.args(arguments).current_dir(&folder);
        npm.env("LONGWIRE", program()).env("OPENAPI", document);
        npm
    };
    runner.step("clients: Node, tools", || {
        // Remove stale sources, but keep installed packages.
        for stale in ["browser", "dist", "src", "test"] {
            let _ = fs::remove_dir_all(folder.join(stale));
        }
        let mut copy = limited("cp");
        copy.args(["--recursive", "--no-target-directory", "clients/node"]);
        copy.arg(&folder);
        run_all([copy, npm(&["ci", "--no-audit", "--no-fund"])])
    });
    runner.step("clients: Node, types and lint", || {
        let scripts = ["generate", "build", "lint"];
        run_all(scripts.map(|script| npm(&["run", script])))
    });
    runner.step("clients: Node, package", || {
        run(npm(&["pack", "--pack-destination", ".."]))
    });
    runner.step("clients: Node, tests", || run(npm(&["test"])));
    runner.step("clients: Node, Playwright", || {
        run(npm(&["run", "test:browser"]))
    });
}

fn go(runner: &mut Runner, document: &Path) {
    if let Err(why) = needs_go() {
        runner.step("clients: Go", || Err(why));
        return;
    }
    let go = |arguments: &[&str]| {
        let mut go = limited("go");
        go.args(arguments).current_dir(root().join("clients/go"));
        go_environment(&mut go);
        go.env("LONGWIRE", program());
        go
    };
    runner.step("clients: Go, generated client", || {
        let generated = folder().join("api.gen.go");
        let mut generate = go(&["run", OAPI_CODEGEN, "-config", "oapi-codegen.yaml", "-o"]);
        generate.arg(&generated).arg(document);
        generate.current_dir(root().join("clients/go/api"));
        run(generate)?;
        compare(&generated, "clients/go/api/api.gen.go")
    });
    runner.step("clients: Go, format", go_format);
    runner.step("clients: Go, vet", || {
        run_all([go(&["mod", "verify"]), go(&["vet", "./..."])])
    });
    runner.step("clients: Go, tests", || {
        run(go(&["test", "-count=1", "./..."]))
    });
}

/// Keeps Go's downloads and caches in the clients' folder.
pub fn go_environment(go: &mut Command) {
    go.env("GOPATH", folder().join("gopath"));
    go.env("GOCACHE", folder().join("gocache"));
    // Make modules writable, so that the target directory can be deleted, and do not download
    // toolchains.
    go.env("GOFLAGS", "-modcacherw").env("GOTOOLCHAIN", "local");
}

/// Fails if a file is not formatted.
fn go_format() -> Outcome {
    let mut format = limited("gofmt");
    format.args(["-l", "clients/go"]);
    match format.output() {
        Ok(output) if output.status.success() && output.stdout.is_empty() => Ok(()),
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            let files = String::from_utf8_lossy(&text).trim().to_owned();
            Err(Failed(format!("not formatted; run gofmt -w {files}")))
        }
        Err(error) => Err(Failed(format!("gofmt: {error}"))),
    }
}

/// Fails if the committed file differs from the generated one.
fn compare(generated: &Path, committed: &str) -> Outcome {
    let (new, old) = (fs::read(generated), fs::read(root().join(committed)));
    if new.is_ok() && new.ok() == old.ok() {
        return Ok(());
    }
    Err(Failed(format!(
        "{committed} was generated from another API; update it: cp {} {committed}",
        generated.display()
    )))
}

/// Installs a Go program; returns the folder that contains it.
pub fn install_go(module: &str) -> Result<PathBuf, Shortfall> {
    needs_go()?;
    let bin = folder().join("gopath/bin");
    let mut install = limited("go");
    install.args(["install", module]);
    go_environment(&mut install);
    install.env("GOBIN", &bin);
    run(install).map(|()| bin)
}

/// Skips the step unless a supported version of Node is installed.
pub fn needs_node() -> Outcome {
    needs("node", "--version", NODE_MIN, "nodejs and npm")
}

/// Skips the step unless a supported version of Go is installed.
pub fn needs_go() -> Outcome {
    needs("go", "version", GO_MIN, "golang")
}

fn needs(program: &str, argument: &str, least: (u32, u32), packages: &str) -> Outcome {
    let output = Command::new(program).arg(argument).output();
    let text = output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    // The output is "v20.20.2" or "go version go1.26.8 linux/amd64", for example.
    let mut words = text.split_whitespace();
    let version = words.find_map(|word| {
        let mut numbers = word.trim_start_matches(['g', 'o', 'v']).split('.');
        let major: u32 = numbers.next()?.parse().ok()?;
        Some((major, numbers.next()?.parse::<u32>().ok()?))
    });
    if version.is_some_and(|found| found >= least) {
        return Ok(());
    }
    let (major, minor) = least;
    Err(Skipped(format!(
        "needs {program} {major}.{minor} or later (Debian: {packages})"
    )))
}
