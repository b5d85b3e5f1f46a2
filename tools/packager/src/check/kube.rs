//! A check of the Kubernetes image: its program runs in the image's files, and prints
//! the same resources as the repository's manifests.

use std::process::Command;

use serde_json::Value;

use super::{Context, Outcome, ensure, is_root, missing};
use crate::image::reference;
use crate::paths::root;
use crate::run::{At, Result, clear, read, run, stdout};

/// Unpacks the image's layers on top of each other and runs its program there.
pub fn image(context: &Context) -> Result<Outcome> {
    if !is_root() {
        return Ok(Outcome::Skipped("needs root, for chroot".to_owned()));
    }
    if let Some(outcome) = missing(&["chroot", "tar"]) {
        return Ok(outcome);
    }
    let unpack = |archive: &std::path::Path, directory: &std::path::Path| {
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--file").arg(archive);
        run(tar.arg("--directory").arg(directory))
    };
    let (parts, files) = (context.scratch.join("parts"), context.scratch.join("files"));
    clear(&parts)?;
    clear(&files)?;
    unpack(&context.kube_image()?, &parts)?;
    let saved: Value = serde_json::from_slice(&read(&parts.join("manifest.json"))?).at(&parts)?;
    let name = reference("longwire-kube");
    ensure(saved[0]["RepoTags"][0] == name.as_str(), || {
        format!("{saved}: not {name}")
    })?;
    for layer in saved[0]["Layers"].as_array().into_iter().flatten() {
        unpack(&parts.join(layer.as_str().unwrap_or_default()), &files)?;
    }
    let program = |arguments: &[&str]| {
        let mut command = Command::new("chroot");
        command
            .arg(&files)
            .arg("/usr/bin/longwire-kube")
            .args(arguments);
        stdout(&mut command)
    };
    let printed = program(&["crds"])?;
    let kept = read(&root().join("packaging/kubernetes/crds.yaml"))?;
    ensure(printed == kept, || {
        "`longwire-kube crds` prints other resources".to_owned()
    })?;
    for role in ["agent", "controller"] {
        let help = program(&[role, "--help"])?;
        ensure(!help.is_empty(), || format!("no help of {role}"))?;
    }
    Ok(Outcome::Passed)
}
