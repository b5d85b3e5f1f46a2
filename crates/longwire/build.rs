//! Embeds the page of the live view, if `cargo xtask page` has built it.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The built page, from the folder of this crate.
const PAGE: &str = "../../ui/dist";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={PAGE}");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut files = Vec::new();
    // Without the page, the program serves one that names the command that builds it.
    if Path::new(PAGE).join("index.html").is_file() {
        collect(Path::new(PAGE), &mut files)?;
    }
    files.sort();
    let mut code = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        println!("cargo::rerun-if-changed={}", file.display());
        let packed = out.join(format!("page-{number}.gz"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&fs::read(file)?)?;
        fs::write(&packed, encoder.finish()?)?;
        let name = file
            .strip_prefix(PAGE)
            .unwrap_or(file)
            .display()
            .to_string();
        let path = if name == "index.html" {
            String::new()
        } else {
            name
        };
        let _ = writeln!(
            code,
            "PageFile {{ path: {:?}, kind: {:?}, content: include_bytes!({:?}), gzip: true }},",
            format!("/{path}"),
            kind_of(file),
            packed.display().to_string(),
        );
    }
    code.push(']');
    fs::write(out.join("page.rs"), code)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the media type of a file.
fn kind_of(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}
