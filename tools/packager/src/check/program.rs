//! Checks the program in the archive.

use std::path::Path;
use std::process::Command;

use super::{Checked, Context, Stop, ensure, ensure_version, needs};
use crate::elf::Elf;
use crate::paths::root;
use crate::program::{DEBUG_FILE, GLIBC, SIZE_MAX};
use crate::run::{At, Result, finish, read, run};

/// Checks the requirements of the program, and that the debug information matches.
pub fn properties(context: &Context) -> Checked {
    let directory = context.unpacked()?;
    let path = directory.join("bin/longwire");
    let bytes = read(&path)?;
    let elf = Elf::read(&bytes).at(&path)?;
    println!(
        "  {} bytes, glibc {}, {}",
        bytes.len(),
        elf.glibc_text(),
        elf.libraries.join(" ")
    );
    let is_stripped = !elf.has_symbols && !elf.has_lines;
    ensure(is_stripped, || "the program is not stripped".to_owned())?;
    let debug_link = elf.debug_link;
    let nothing = || "the program names no debug-information file".to_owned();
    let (name, crc) = debug_link.ok_or_else(nothing)?;
    let debug = debug_information(context)?;
    let elsewhere =
        || format!("the program names {name} as its debug information, not {DEBUG_FILE}");
    ensure(name == DEBUG_FILE, elsewhere)?;
    let foreign = || format!("{name} belongs to another program");
    ensure(crc == crc32fast::hash(&debug), foreign)?;
    let has_lines = Elf::read(&debug)?.has_lines;
    ensure(has_lines, || format!("{name} has no line tables"))?;
    ensure_version(&path)?;
    if context.trial {
        let why = "glibc, size and paths are not checked with --trial";
        return Err(Stop::Skipped(why.to_owned()));
    }
    let (glibc, size) = (elf.glibc, bytes.len());
    ensure(glibc <= Some(GLIBC), || {
        format!("needs glibc {glibc:?}; the maximum is {GLIBC:?}")
    })?;
    ensure(size <= SIZE_MAX, || {
        format!("{size} bytes; the maximum is {SIZE_MAX}")
    })?;
    let home = std::env::var("HOME").ok();
    let paths = [Some(root().display().to_string()), home];
    for path in paths.into_iter().flatten().filter(|path| path.len() > 1) {
        let mut parts = bytes.windows(path.len());
        let holds = parts.any(|part| part == path.as_bytes());
        ensure(!holds, || {
            format!("the program contains this machine's path {path}")
        })?;
    }
    Ok(())
}

fn debug_information(context: &Context) -> Result<Vec<u8>> {
    let directory = context.scratch.join("debug");
    std::fs::create_dir(&directory).at(&directory)?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--strip-components=1", "--file"]);
    tar.arg(context.package("-debug.tar.gz")?);
    run(tar.arg("--directory").arg(&directory))?;
    read(&directory.join(DEBUG_FILE))
}

/// Checks that the program can load a plugin, as a static program could not.
pub fn plugin(context: &Context) -> Checked {
    needs(&["cc"])?;
    let directory = context.unpacked()?;
    let library = context.scratch.join("data_loss.so");
    let mut compile = Command::new("cc");
    compile
        .args(["-std=c99", "-O2", "-shared", "-fPIC", "-I"])
        .arg(directory.join("include"))
        .arg("-o")
        .arg(&library)
        .arg(directory.join("share/doc/longwire/examples/data_loss.c"));
    run(&mut compile)?;
    let in_file = context.scratch.join("in.pcap");
    let out_file = context.scratch.join("out.pcap");
    let longwire = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(directory.join("bin/longwire"));
        let finished = finish(command.args(arguments))?;
        ensure(finished.code == Some(0), || finished.text.clone())?;
        Ok(finished.text)
    };
    let to = format!("pcap:{}", in_file.display());
    longwire(&[
        "generate", "--to", &to, "--rate", "1kpps", "--count", "1000",
    ])?;
    let loss = format!("plugin:file={},offset=23,bytes=11,p=50%", library.display());
    let files = [&in_file, &out_file].map(|file| file.display().to_string());
    longwire(&["simulate", &files[0], &files[1], "--delay", "1ms"])?;
    let all = size(&out_file)?;
    longwire(&[
        "simulate", &files[0], &files[1], "--delay", "1ms", "--seed", "7", "--loss", &loss,
    ])?;
    let left = size(&out_file)?;
    // All frames are UDP, and the plugin drops each with probability 1/2. Of 1000 frames, it drops
    // 400 to 600 with probability 1 - 1e-9; the seed is fixed.
    let half = all * 4 / 10..all * 6 / 10;
    let fault = || format!("the plugin left {left} of {all} bytes");
    ensure(half.contains(&left), fault)?;
    Ok(())
}

fn size(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path).at(path)?.len())
}
