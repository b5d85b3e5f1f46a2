//! Builds Longwire's packages, and tests them after installation.
//!
//! Run by `cargo xtask package` and `cargo xtask package-test`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod base;
mod check;
mod elf;
mod image;
mod metadata;
mod paths;
mod program;
mod run;
mod stage;
mod tree;

use image::Layer;
use metadata::Metadata;
use paths::{BuildPaths, VERSION};
use program::{KUBE, LONGWIRE, Program};
use run::{Result, write};

#[derive(Debug, Parser)]
#[command(
    name = "longwire-packager",
    about = "Builds and tests the packages of Longwire"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build packages
    Package(PackageArgs),
    /// Install and test packages
    Test(TestArgs),
}

/// Package kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Archives of the program and its debug information
    Archive,
    /// A package for Debian and Ubuntu
    Deb,
    /// A package for rpm distributions
    Rpm,
    /// A container image
    Image,
    /// An image of the Kubernetes agent and controller
    KubeImage,
    /// The software bill of materials (CycloneDX)
    Sbom,
}

#[derive(Debug, Args)]
struct PackageArgs {
    /// Build these kinds only
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only: Vec<Kind>,
    /// Output directory; default: target/package/out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Package this program, with its debug information, instead of building it
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Accept a program that needs a newer glibc than the packages declare, for this machine only
    #[arg(long)]
    trial: bool,
}

#[derive(Debug, Args)]
struct TestArgs {
    /// Run these checks only
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    only: Vec<String>,
    /// Directory of the packages; default: target/package/out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Program with its debug information; default: the last build's
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Also accept packages that may not run on other machines
    #[arg(long)]
    trial: bool,
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Package(args) => package(&args).map(|()| ExitCode::SUCCESS),
        Task::Test(args) => test(args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn package(args: &PackageArgs) -> Result<()> {
    let paths = BuildPaths::new(args.out.clone())?;
    let program = Program::prepare(LONGWIRE, &paths, args.binary.as_deref())?;
    match program.check() {
        Err(error) if args.trial => println!("  for this machine only: {error}"),
        result => result?,
    }
    println!(
        "  longwire {VERSION}: {} bytes stripped, glibc {}, libraries {}",
        program.bytes.len(),
        program.elf.glibc_text(),
        program.elf.libraries.join(" ")
    );
    write_packages(&paths, &program, &args.only)?;
    // A binary given on the command line is the emulator.
    if args.only.contains(&Kind::KubeImage) || args.only.is_empty() && args.binary.is_none() {
        write_kube_image(&paths)?;
    }
    crate::stage::write_sums(&paths)
}

/// Builds the Kubernetes agent and controller, and writes their image.
fn write_kube_image(paths: &BuildPaths) -> Result<()> {
    let program = Program::prepare(KUBE, paths, None)?;
    program.check()?;
    let metadata = Metadata::read(KUBE, program.elf.architecture)?;
    let layers = [
        base::layer(paths, &program)?,
        stage::kube_layer(&program, &metadata)?,
    ];
    image::write_image(paths, &program, &layers)
}

fn test(args: TestArgs) -> Result<ExitCode> {
    let paths = BuildPaths::new(args.out)?;
    let built = LONGWIRE.built(&paths);
    let context = check::Context {
        scratch: paths.work.join("test"),
        binary: args.binary.or_else(|| built.is_file().then_some(built)),
        trial: args.trial,
        paths,
    };
    check::run(&context, &args.only)
}

/// Writes the emulator's packages of these kinds; if `only` is empty, of all kinds.
fn write_packages(paths: &BuildPaths, program: &Program, only: &[Kind]) -> Result<()> {
    let kinds = Kind::value_variants().iter();
    let kinds = kinds.filter(|kind| only.is_empty() || only.contains(kind));
    std::fs::create_dir_all(&paths.out).map_err(|error| error.to_string())?;
    let metadata = Metadata::read(LONGWIRE, program.elf.architecture)?;
    let tree = stage::tree(paths, program, &metadata)?;
    stage::write_stage(paths, &tree)?;
    for kind in kinds {
        match kind {
            Kind::Archive => stage::write_archives(paths, program, &tree)?,
            Kind::Deb => crate::stage::write_deb(paths)?,
            Kind::Rpm => crate::stage::write_rpm(paths)?,
            Kind::Image => {
                let layers = [base::layer(paths, program)?, own_layer(&tree)];
                image::write_image(paths, program, &layers)?;
            }
            Kind::KubeImage => {}
            Kind::Sbom => {
                let path = paths.package(&format!("{}.cdx.json", stage::archive_name(program)));
                write(&path, &metadata.bill(paths, program)?)?;
            }
        }
    }
    Ok(())
}

/// Returns the image layer with the program, without service files and completions, which
/// containers do not need.
fn own_layer(tree: &tree::Tree) -> Layer {
    let kept = ["usr/bin/", "usr/include/", "usr/share/doc/"];
    Layer {
        tree: tree.filter(|path| kept.iter().any(|start| path.starts_with(start))),
        created_by: format!("longwire {VERSION}"),
    }
}
