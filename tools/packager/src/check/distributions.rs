//! Checks distribution packages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Checked, Context, ensure, ensure_version, needs, needs_root, script};
use crate::paths::VERSION;
use crate::run::{At, Result, clear, finish, run, text};

/// The oldest Debian release on mirrors, with glibc 2.31.
const DEBIAN: &str = "bullseye";

const MIRROR: &str = "http://deb.debian.org/debian";

/// Checks the units and the tmpfiles entry with systemd's tools.
pub fn units(context: &Context) -> Checked {
    needs(&["dpkg-deb", "systemd-analyze", "systemd-tmpfiles"])?;
    let root = context.scratch.join("root");
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(context.package(".deb")?);
    run(unpack.arg(&root))?;
    for directory in ["etc", "run", "lib/systemd/system"] {
        let directory = root.join(directory);
        std::fs::create_dir_all(&directory).at(&directory)?;
    }
    // Targets to which the units' ordering refers.
    for target in ["network-pre", "multi-user", "basic", "sysinit", "shutdown"] {
        let path = root.join(format!("lib/systemd/system/{target}.target"));
        std::fs::write(&path, "[Unit]\n").at(&path)?;
    }
    let of_root = format!("--root={}", root.display());
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["verify", "--man=no", &of_root]);
    let units = ["longwire@office.service", "longwire-node.service"];
    let verified = finish(analyze.args(units))?;
    print!("{}", verified.text);
    let complains = verified.text.lines().any(|line| line.contains("longwire"));
    ensure(verified.code == Some(0) && !complains, || verified.text)?;
    let mut tmpfiles = Command::new("systemd-tmpfiles");
    run(tmpfiles.args(["--create", &of_root, "longwire.conf"]))?;
    let mut stat = Command::new("stat");
    let mode = text(stat.args(["-c", "%a"]).arg(root.join("run/longwire")))?;
    let fault = || format!("/run/longwire has mode {mode}");
    ensure(mode.trim() == "755", fault)?;
    Ok(())
}

/// Installs, uses and removes the deb in Debian.
pub fn deb(context: &Context) -> Checked {
    needs_root("debootstrap")?;
    needs(&["debootstrap", "unshare", "pivot_root"])?;
    let root = context.scratch.join("root");
    copy(&debian(context)?, &root)?;
    let mut test = Command::new("unshare");
    test.args(["--mount", "--pid", "--net", "--fork", "--kill-child", "sh"])
        .arg(script("deb.sh"))
        .arg(&root)
        .arg(context.package(".deb")?)
        .arg(script("deb-inside.sh"))
        .arg(VERSION);
    run(&mut test)?;
    Ok(())
}

/// Returns a directory with an installed Debian, which is created on first use.
fn debian(context: &Context) -> Result<PathBuf> {
    let directory = context.paths.work.join(format!("debian-{DEBIAN}"));
    let done = directory.join(".complete");
    if !done.exists() {
        clear(&directory)?;
        let mut bootstrap = Command::new("debootstrap");
        bootstrap.args(["--variant=minbase", "--include=iputils-ping", DEBIAN]);
        run(bootstrap.arg(&directory).arg(MIRROR))?;
        std::fs::write(&done, "").at(&done)?;
    }
    Ok(directory)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut copy = Command::new("cp");
    copy.args(["--archive", "--reflink=auto"]);
    run(copy.arg(from).arg(to))
}

/// Installs and removes the rpm in a directory with a shell, and compares it with the deb.
pub fn rpm(context: &Context) -> Checked {
    needs(&["rpm", "dpkg-deb"])?;
    needs_root("rpm --root")?;
    let package = context.package(".rpm")?;
    let of_package = |arguments: &[&str]| {
        let mut rpm = Command::new("rpm");
        rpm.args(arguments).arg(&package);
        rpm
    };
    run(&mut of_package(&["--checksig", "--nosignature"]))?;
    let files = text(&mut of_package(&["-q", "--list", "--package"]))?;
    let files: BTreeSet<&str> = files.lines().collect();
    compare_with_deb(context, &files)?;
    let requires = text(&mut of_package(&["-q", "--requires", "-p"]))?;
    print!("{requires}");
    let mut lines = requires.lines();
    let asks = lines.any(|line| line == "libc.so.6(GLIBC_2.17)(64bit)");
    ensure(asks, || "the rpm does not require glibc".to_owned())?;
    // The scripts of the package need a shell.
    let root = context.scratch.join("root");
    copy(&debian(context)?, &root)?;
    let rpm = |arguments: &[&str], path: Option<&Path>| -> Result<()> {
        let mut command = Command::new("rpm");
        run(command.arg("--root").arg(&root).args(arguments).args(path))
    };
    let before = tree(&root)?;
    rpm(&["--install", "--nodeps"], Some(&package))?;
    rpm(&["--verify", "--nodeps", "longwire"], None)?;
    ensure_version(&root.join("usr/bin/longwire"))?;
    rpm(&["--erase", "--nodeps", "longwire"], None)?;
    let after = tree(&root)?;
    let left: Vec<_> = after.difference(&before).collect();
    ensure(left.is_empty(), || format!("left behind: {left:?}"))?;
    println!("  nothing is left behind");
    Ok(())
}

/// Returns the paths in a directory, without rpm's database.
fn tree(root: &Path) -> Result<BTreeSet<String>> {
    let paths = text(Command::new("find").arg(root))?;
    let paths = paths.lines().filter(|path| !path.contains("/rpm"));
    Ok(paths.map(str::to_owned).collect())
}

/// Compares the files of both packages. Debian uses a different directory for zsh, and adds a file
/// `copyright`.
fn compare_with_deb(context: &Context, rpm: &BTreeSet<&str>) -> Result<()> {
    let mut list = Command::new("dpkg-deb");
    let deb = text(list.arg("--contents").arg(context.package(".deb")?))?;
    let deb = deb.lines().filter(|line| !line.starts_with('d'));
    let deb = deb.filter_map(|line| line.split_whitespace().last());
    let deb = deb.filter(|path| !path.ends_with("/copyright"));
    let deb = deb.map(|path| path.trim_start_matches('.'));
    let deb = deb.map(|path| path.replace("vendor-completions/_", "site-functions/_"));
    let deb: BTreeSet<String> = deb.collect();
    let deb: BTreeSet<&str> = deb.iter().map(String::as_str).collect();
    let differ: Vec<_> = deb.symmetric_difference(rpm).collect();
    let fault = || format!("in one package only: {differ:?}");
    ensure(differ.is_empty(), fault)?;
    for part in ["/usr/bin/longwire", "/usr/include/longwire_plugin.h"] {
        ensure(rpm.contains(part), || format!("{part} is missing"))?;
    }
    println!("  {} files, the same in both packages", rpm.len());
    Ok(())
}
