//! Containers run by runc directly: as an ordinary user within the container, which
//! `ctr` cannot do, and by an ordinary user of the machine.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::Context;
use super::containers::{CONNECT, USER};
use crate::run::{At, Finished, Result, finish, run, write};
use crate::tree::{Node, Tree};

/// The image's files in a directory.
#[derive(Debug)]
pub struct Bundle {
    directory: PathBuf,
}

impl Bundle {
    /// Unpacks the layers of an image.
    pub fn unpack(context: &Context, image: &Path) -> Result<Bundle> {
        let image = Tree::from_tar(std::fs::File::open(image).at(image)?)?;
        let content = |path: &str| match image.get(path) {
            Some(Node::File(_, content)) => Ok(content.as_slice()),
            _ => Err(format!("the image has no {path}")),
        };
        let saved: Value = serde_json::from_slice(content("manifest.json")?).at("image")?;
        let mut files = Tree::default();
        for layer in saved[0]["Layers"].as_array().into_iter().flatten() {
            let layer = content(layer.as_str().unwrap_or_default())?;
            for (path, node) in Tree::from_tar(GzDecoder::new(layer))?.iter() {
                files.insert(path, node.clone());
            }
        }
        let directory = context.scratch.join("bundle");
        files.write(&directory.join("rootfs"))?;
        let bundle = Bundle { directory };
        // Ordinary users must have access, and runc writes there.
        run(Command::new("chmod")
            .args(["-R", "a+rX"])
            .arg(&bundle.directory))?;
        chown(&bundle.directory, Some(USER), Some(USER)).at(&bundle.directory)?;
        Ok(bundle)
    }

    /// Runs a container with this configuration as an ordinary user within it.
    pub fn run_as_user(&self, spec: &str) -> Result<Finished> {
        let mut spec: Value = serde_json::from_str(spec).at("configuration")?;
        spec["process"]["user"] = json!({ "uid": USER, "gid": USER });
        // As engines do for such users: they have only the rights of the program file.
        for set in ["effective", "permitted", "inheritable", "ambient"] {
            spec["process"]["capabilities"][set] = json!([]);
        }
        spec["linux"]["cgroupsPath"] = json!("/longwire-package-test");
        self.run(Command::new("runc"), spec, "as-user")
    }

    /// Runs a container as an ordinary user, with these additional capabilities.
    pub fn run_rootless(&self, capabilities: &[&str]) -> Result<Finished> {
        let configuration = self.directory.join("config.json");
        let _ = std::fs::remove_file(&configuration);
        run(as_user("runc")
            .args(["spec", "--rootless", "--bundle"])
            .arg(&self.directory))?;
        let spec = std::fs::read(&configuration).at(&configuration)?;
        let mut spec: Value = serde_json::from_slice(&spec).at("configuration")?;
        for set in ["bounding", "effective", "permitted"] {
            let set = &mut spec["process"]["capabilities"][set];
            set.as_array_mut()
                .ok_or("runc's configuration has no capabilities")?
                .extend(capabilities.iter().map(|name| json!(name)));
        }
        self.run(as_user("runc"), spec, "rootless")
    }

    fn run(&self, mut runc: Command, mut spec: Value, name: &str) -> Result<Finished> {
        spec["root"] = json!({ "path": self.directory.join("rootfs"), "readonly": true });
        spec["process"]["args"] = json!(CONNECT);
        spec["process"]["terminal"] = json!(false);
        write(
            &self.directory.join("config.json"),
            spec.to_string().as_bytes(),
        )?;
        runc.arg("--root")
            .arg(self.directory.join(format!("state-{name}")));
        finish(
            runc.args(["run", "--bundle"])
                .arg(&self.directory)
                .arg(format!("longwire-{name}")),
        )
    }
}

/// Returns a command that an ordinary user runs.
fn as_user(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    let user = USER.to_string();
    command.args([
        "--reuid",
        &user,
        "--regid",
        &user,
        "--clear-groups",
        program,
    ]);
    command
}
