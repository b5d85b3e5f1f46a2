//! Checks a complete release: reproducibility, checksums and bill of materials.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Checked, Context, ensure, needs};
use crate::paths::BuildPaths;
use crate::program::{LONGWIRE, Program};
use crate::run::{Result, list, make_venv, read, run};
use crate::stage::write_sums;
use crate::write_packages;

/// Builds all packages twice from the same program, at different times and in different
/// directories, and compares them. Uses the program of the last build or, without one, the stripped
/// program in the archive, for which there is no debug archive.
pub fn reproducible(context: &Context) -> Checked {
    let unpacked = context.unpacked()?.join("bin/longwire");
    let given = context.binary.clone().unwrap_or(unpacked);
    let mut made = Vec::new();
    for name in ["first", "second"] {
        let base = context.scratch.join(name);
        let paths = BuildPaths {
            target: base.clone(),
            work: base.join("package"),
            out: base.join("out"),
            time: context.paths.time,
        };
        let program = Program::prepare(LONGWIRE, &paths, Some(&given))?;
        write_packages(&paths, &program, &[])?;
        write_sums(&paths)?;
        made.push(paths.out);
        // Make timestamps in whole seconds differ.
        std::thread::sleep(Duration::from_millis(1100));
    }
    compare(&made[0], &made[1])?;
    Ok(())
}

fn compare(first: &Path, second: &Path) -> Result<()> {
    let names = |directory: &Path| -> Result<Vec<_>> {
        let paths = list(directory)?.into_iter();
        let names = paths.filter_map(|path| path.file_name().map(ToOwned::to_owned));
        Ok(names.collect())
    };
    let both = [names(first)?, names(second)?];
    ensure(both[0] == both[1], || format!("different files: {both:?}"))?;
    ensure(both[0].len() >= 6, || format!("too few files: {both:?}"))?;
    for name in &both[0] {
        let same = read(&first.join(name))? == read(&second.join(name))?;
        let name = name.to_string_lossy();
        let (first, second) = (first.display(), second.display());
        ensure(same, || format!("{name} differs: cmp -l {first} {second}"))?;
        println!("  {name}: byte-identical");
    }
    Ok(())
}

/// Checks the checksums with coreutils, and the bill of materials against CycloneDX's schema from a
/// PyPI package.
pub fn sums_and_bill(context: &Context) -> Checked {
    needs(&["python3", "sha256sum"])?;
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--strict", crate::stage::NAME]);
    run(sums.current_dir(&context.paths.out))?;
    let venv = context.paths.work.join("venv-bill");
    make_venv(&venv, &["cyclonedx-python-lib[json-validation]==11.12.0"])?;
    let mut validate = Command::new(venv.join("bin/python"));
    validate
        .arg(super::script("bill.py"))
        .arg(context.package(".cdx.json")?);
    run(&mut validate)?;
    Ok(())
}
