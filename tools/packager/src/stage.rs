//! The installed files, identical in all packages.

use std::fmt::Write as _;
use std::fs;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::image::{Layer, hex};
use crate::metadata::Metadata;
use crate::paths::{BuildPaths, VERSION, root};
use crate::program::{DEBUG_FILE, Program};
use crate::run::{At, Result, clear, exists, list, read, run, stdout, write};
use crate::tree::{Node, Tree, gzip};

/// Shells, with the locations of their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/longwire"),
    ("fish", "usr/share/fish/vendor_completions.d/longwire.fish"),
    ("zsh", "usr/share/zsh/site-functions/_longwire"),
];

/// Files of the repository, with their installed locations.
const FILES: [(&str, &str); 11] = [
    ("include/longwire_plugin.h", "usr/include/longwire_plugin.h"),
    (
        "packaging/longwire@.service",
        "usr/lib/systemd/system/longwire@.service",
    ),
    (
        "packaging/longwire-node.service",
        "usr/lib/systemd/system/longwire-node.service",
    ),
    (
        "packaging/longwire.tmpfiles.conf",
        "usr/lib/tmpfiles.d/longwire.conf",
    ),
    (
        "packaging/grafana/longwire.json",
        "usr/share/doc/longwire/examples/grafana-longwire.json",
    ),
    ("README.md", "usr/share/doc/longwire/README.md"),
    ("CHANGELOG.md", "usr/share/doc/longwire/CHANGELOG.md"),
    ("LICENSE-APACHE", "usr/share/doc/longwire/LICENSE-APACHE"),
    ("LICENSE-MIT", "usr/share/doc/longwire/LICENSE-MIT"),
    (
        "examples/plugins/data_loss.c",
        "usr/share/doc/longwire/examples/data_loss.c",
    ),
    (
        "examples/topologies/parking-lot.toml",
        "usr/share/doc/longwire/examples/parking-lot.toml",
    ),
];

/// Returns the installed files. The program itself generates manual pages and completions.
pub fn tree(paths: &BuildPaths, program: &Program, metadata: &Metadata) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.program("usr/bin/longwire", program.bytes.clone());
    for (source, path) in FILES {
        tree.file(path, read(&root().join(source))?);
    }
    let notices = "usr/share/doc/longwire/third-party-licenses.txt.gz";
    tree.file(notices, gzip(metadata.notices()?.as_bytes())?);
    for (shell, path) in COMPLETIONS {
        let completions = stdout(Command::new(&program.path).args(["completions", shell]))?;
        tree.file(path, completions);
    }
    let pages = paths.work.join("man");
    clear(&pages)?;
    run(Command::new(&program.path).arg("man").arg(&pages))?;
    for page in list(&pages)? {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        let path = format!("usr/share/man/man1/{name}.gz");
        tree.file(&path, gzip(&read(&page)?)?);
    }
    Ok(tree)
}

/// Returns the layer of the Kubernetes image.
pub fn kube_layer(program: &Program, metadata: &Metadata) -> Result<Layer> {
    let mut tree = Tree::default();
    tree.program("usr/bin/longwire-kube", program.bytes.clone());
    let documents = "usr/share/doc/longwire-kube";
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let text = read(&root().join(licence))?;
        tree.file(&format!("{documents}/{licence}"), text);
    }
    let notices = gzip(metadata.notices()?.as_bytes())?;
    tree.file(&format!("{documents}/third-party-licenses.txt.gz"), notices);
    Ok(Layer {
        tree,
        created_by: format!("longwire-kube {VERSION}"),
    })
}

/// Writes the files, with the packages' timestamp, to `dist/stage` in the target directory, where
/// `cargo deb` and `cargo generate-rpm` read them.
pub fn write_stage(paths: &BuildPaths, tree: &Tree) -> Result<()> {
    let directory = paths.target.join("dist/stage");
    clear(&directory)?;
    tree.write(&directory)?;
    set_times(&directory, paths.time)
}

fn set_times(path: &Path, time: u64) -> Result<()> {
    if path.is_dir() {
        for inner in list(path)? {
            set_times(&inner, time)?;
        }
    }
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(time);
    let times = fs::FileTimes::new().set_modified(time);
    let set = File::open(path).and_then(|file| file.set_times(times));
    set.at(path)
}

/// Returns the common prefix of archive names.
pub fn archive_name(program: &Program) -> String {
    let architecture = program.elf.architecture;
    format!("{}-{VERSION}-{architecture}-linux-gnu", program.name)
}

/// Writes the relocatable archive, and the archive with debug information.
pub fn write_archives(paths: &BuildPaths, program: &Program, tree: &Tree) -> Result<()> {
    let name = archive_name(program);
    let mut archive = Tree::default();
    for (path, node) in tree.iter() {
        let inside = path.strip_prefix("usr/").unwrap_or(path);
        if path != "usr" {
            archive.insert(inside, node.clone());
        }
    }
    let pack = |tree: &Tree, name: &str| -> Result<()> {
        let content = gzip(&tree.inside(name).tar(paths.time)?)?;
        write(&paths.package(&format!("{name}.tar.gz")), &content)
    };
    pack(&archive, &name)?;
    let Some(debug) = &program.debug else {
        println!("  the program has no debug information, so no debug archive is built");
        return Ok(());
    };
    let mut tree = Tree::default();
    tree.insert(DEBUG_FILE, Node::File(0o644, debug.clone()));
    pack(&tree, &format!("{name}-debug"))
}

/// Builds the Debian package.
pub fn write_deb(paths: &BuildPaths) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["deb", "--package", "longwire", "--profile", "dist"]);
    command.args(["--no-build", "--no-strip"]);
    package(paths, "cargo-deb", command, ".deb")
}

/// Builds the package for rpm distributions.
pub fn write_rpm(paths: &BuildPaths) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["generate-rpm", "--package", "crates/longwire"]);
    command.args(["--profile", "dist", "--target-dir"]);
    command.arg(&paths.target);
    package(paths, "cargo-generate-rpm", command, ".rpm")
}

/// Builds a package with a tool, replacing an old one with the same ending.
fn package(paths: &BuildPaths, tool: &str, mut command: Command, ending: &str) -> Result<()> {
    if !exists(tool) {
        let how = format!("cargo install {tool} --locked --debug");
        return Err(format!("needs {tool}: {how}"));
    }
    for path in list(&paths.out)? {
        if path.to_string_lossy().ends_with(ending) {
            fs::remove_file(&path).at(&path)?;
        }
    }
    command
        .arg("--output")
        .arg(&paths.out)
        .current_dir(root())
        .env("CARGO_TARGET_DIR", &paths.target)
        .env("SOURCE_DATE_EPOCH", paths.time.to_string());
    run(&mut command)
}

/// Name of the checksum file.
pub const NAME: &str = "SHA256SUMS";

/// Writes the checksums of all packages.
pub fn write_sums(paths: &BuildPaths) -> Result<()> {
    let mut text = String::new();
    for path in list(&paths.out)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name != NAME && path.is_file() {
            let _ = writeln!(text, "{}  {name}", hex(&Sha256::digest(read(&path)?)));
        }
    }
    write(&paths.package(NAME), text.as_bytes())
}
