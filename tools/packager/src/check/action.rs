//! Tests the GitHub Action's script locally: a directory stands in for the release, files for the
//! step's outputs.

use std::process::Command;

use super::{Checked, Context, ensure, ensure_version, needs};
use crate::paths::{VERSION, root};
use crate::run::{At, Finished, Result, finish, list, run, write};

/// Go module and version of actionlint.
const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

/// Installs the archive as the action does. A modified archive must be refused.
pub fn install(context: &Context) -> Checked {
    needs(&["bash", "curl", "sha256sum", "tar"])?;
    let release = context.scratch.join("release");
    std::fs::create_dir(&release).at(&release)?;
    for path in list(&context.paths.out)? {
        let name = path.file_name().unwrap_or_default();
        std::fs::copy(&path, release.join(name)).at(&path)?;
    }
    let finished = action(context, VERSION)?;
    ensure(finished.code == Some(0), || finished.text.clone())?;
    let lines = std::fs::read_to_string(context.scratch.join("path")).at("GITHUB_PATH")?;
    let directory = lines.lines().next().unwrap_or_default();
    let program = std::path::Path::new(directory).join("longwire");
    ensure_version(&program)?;
    let outputs = std::fs::read_to_string(context.scratch.join("output")).at("GITHUB_OUTPUT")?;
    let has_version = outputs.contains(&format!("version={VERSION}\n"));
    ensure(has_version, || outputs)?;

    let missing = action(context, "9.9.9")?;
    let says = missing.text.contains("9.9.9");
    let fault = || format!("the message for a missing release: {}", missing.text);
    ensure(missing.code != Some(0) && says, fault)?;
    let archive = context.package("-linux-gnu.tar.gz")?;
    let archive = release.join(archive.file_name().unwrap_or_default());
    write(&archive, b"changed")?;
    let changed = action(context, VERSION)?;
    let refused = changed.code != Some(0) && changed.text.contains("checksum");
    ensure(refused, || {
        format!("a changed archive: {:?} {}", changed.code, changed.text)
    })?;
    Ok(())
}

/// Checks workflows and the action with actionlint, which is built from its Go module, and shell
/// scripts with shellcheck. actionlint reads the action only if a workflow uses it.
pub fn lint(context: &Context) -> Checked {
    needs(&["go", "shellcheck"])?;
    let programs = context.paths.work.join("go");
    let actionlint = programs.join("actionlint");
    if !actionlint.exists() {
        let mut install = Command::new("go");
        install.args(["install", ACTIONLINT]);
        install.env("GOBIN", &programs);
        run(install.current_dir(&context.scratch))?;
    }
    run(Command::new(&actionlint).current_dir(root()))?;
    let mut scripts = vec![root().join("packaging/action.sh")];
    scripts.extend(list(&root().join("packaging/debian"))?);
    scripts.extend(["deb.sh", "deb-inside.sh"].map(super::script));
    run(Command::new("shellcheck").args(scripts))?;
    Ok(())
}

fn action(context: &Context, version: &str) -> Result<Finished> {
    let release = context.scratch.join("release");
    let temporary = context.scratch.join("runner");
    std::fs::create_dir_all(&temporary).at(&temporary)?;
    let mut script = Command::new("bash");
    script
        .arg(root().join("packaging/action.sh"))
        .env("LONGWIRE_VERSION", version)
        .env("LONGWIRE_RELEASES", format!("file://{}", release.display()))
        .env("RUNNER_TEMP", &temporary)
        .env("GITHUB_PATH", context.scratch.join("path"))
        .env("GITHUB_OUTPUT", context.scratch.join("output"));
    finish(&mut script)
}
