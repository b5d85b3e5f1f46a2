//! The image's base layer: the C library and a shell, from Debian packages.
//!
//! A whole distribution takes tens of megabytes; these packages suffice for the program and for
//! first experiments. apt checks the signatures of its downloads.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::image::Layer;
use crate::paths::BuildPaths;
use crate::program::Program;
use crate::run::{Result, clear, exists, list, run, stdout, text};
use crate::tree::{Node, Tree};

/// The C library, and programs to try a link: a shell, ping, nc and wget.
const PACKAGES: [&str; 2] = ["libc6", "busybox-static"];

/// Parts of paths to omit: character set conversions, Debian's metadata and message catalogues.
const LEFT_OUT: [&str; 4] = [
    "gconv",
    "usr/share/lintian",
    "usr/share/doc-base",
    "libc.mo",
];

/// Returns the layer: files from Debian packages, accounts and temporary directories.
pub fn layer(paths: &BuildPaths, program: &Program) -> Result<Layer> {
    for tool in ["apt-get", "dpkg-deb"] {
        if !exists(tool) {
            let why = "the image's C library comes from Debian";
            return Err(format!("needs {tool}: {why}"));
        }
    }
    let directory = paths.work.join("debian");
    let mut names = PACKAGES.to_vec();
    // A program linked by the system's linker needs libgcc; zig links its functions statically.
    let libraries = &program.elf.libraries;
    if libraries.iter().any(|name| name == "libgcc_s.so.1") {
        names.push("libgcc-s1");
    }
    let packages = download(&directory, &names, program.elf.debian_architecture())?;
    let mut tree = skeleton();
    let mut names = Vec::new();
    for package in &packages {
        names.push(unpack(package, &mut tree)?);
    }
    for library in libraries {
        let end = format!("/{library}");
        if !tree.iter().any(|(path, _)| path.ends_with(&end)) {
            let what = format!("the program needs {library}, which the image lacks");
            return Err(what);
        }
    }
    link_applets(paths, &mut tree)?;
    let created_by = format!("Debian packages: {}", names.join(", "));
    Ok(Layer { tree, created_by })
}

fn download(directory: &Path, names: &[&str], architecture: &str) -> Result<Vec<PathBuf>> {
    clear(directory)?;
    let mut apt = Command::new("apt-get");
    // By default, apt downloads as a user without write permission to this directory.
    apt.args(["-q", "-o", "APT::Sandbox::User=root", "download"]);
    apt.args(names.iter().map(|name| format!("{name}:{architecture}")));
    run(apt.current_dir(directory))?;
    let packages = list(directory)?;
    if packages.len() == names.len() {
        return Ok(packages);
    }
    let (directory, count) = (directory.display(), names.len());
    Err(format!("{directory}: expected {count} packages"))
}

/// Adds the files of a package; returns the package's name and version.
fn unpack(package: &Path, tree: &mut Tree) -> Result<String> {
    let tar = stdout(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(package))?;
    let files = Tree::from_tar(tar.as_slice())?;
    let files = files.filter(|path| !LEFT_OUT.iter().any(|part| path.contains(part)));
    for (path, node) in files.iter() {
        let path = merged(path);
        let is_known = matches!(tree.get(&path), Some(Node::Directory(_) | Node::Link(_)));
        if !(is_known && matches!(node, Node::Directory(_))) {
            tree.insert(&path, node.clone());
        }
    }
    let mut show = Command::new("dpkg-deb");
    show.args(["--show", "--showformat", "${Package} ${Version}"]);
    text(show.arg(package))
}

/// Returns the path under /usr of a file in /bin, /sbin or /lib, which are symbolic links.
fn merged(path: &str) -> String {
    let first = path.split('/').next().unwrap_or_default();
    if ["bin", "sbin", "lib", "lib64"].contains(&first) {
        return format!("usr/{path}");
    }
    path.to_owned()
}

/// Returns the directories, links and accounts of a minimal system.
fn skeleton() -> Tree {
    let mut tree = Tree::default();
    for path in ["bin", "sbin", "lib", "lib64"] {
        tree.insert(&format!("usr/{path}"), Node::Directory(0o755));
        tree.insert(path, Node::Link(format!("usr/{path}")));
    }
    for path in ["dev", "proc", "run", "sys", "var"] {
        tree.insert(path, Node::Directory(0o755));
    }
    // All users may write captures to /work.
    for path in ["tmp", "var/tmp", "work"] {
        tree.insert(path, Node::Directory(0o1777));
    }
    tree.insert("root", Node::Directory(0o700));
    let users = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
    let services = "passwd: files\ngroup: files\nhosts: files dns\n";
    for (path, text) in [
        ("etc/passwd", users),
        ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        // `exec` bind-mounts a file over this one.
        ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
        ("etc/resolv.conf", ""),
        ("etc/nsswitch.conf", services),
    ] {
        tree.file(path, text.as_bytes().to_vec());
    }
    tree
}

/// Adds links for busybox's other applets.
fn link_applets(paths: &BuildPaths, tree: &mut Tree) -> Result<()> {
    let Some(Node::File(_, busybox)) = tree.get("usr/bin/busybox") else {
        return Err("busybox-static has no bin/busybox".to_owned());
    };
    let mut alone = Tree::default();
    alone.program("busybox", busybox.clone());
    let directory = paths.work.join("busybox");
    clear(&directory)?;
    alone.write(&directory)?;
    for name in text(Command::new(directory.join("busybox")).arg("--list"))?.lines() {
        let path = format!("usr/bin/{name}");
        if tree.get(&path).is_none() {
            tree.insert(&path, Node::Link("busybox".to_owned()));
        }
    }
    Ok(())
}
