//! SHA256SUMS: the checksums of all packages, in the format of `sha256sum --check`.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::image::hex;
use crate::paths::BuildPaths;
use crate::run::{Result, list, read, write};

/// The name of the file with the checksums.
pub const NAME: &str = "SHA256SUMS";

/// Writes the checksums of all files among the packages.
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
