//! The program under measurement.

use std::path::PathBuf;

use longwire::Error;

/// Variable with the program's path, if it is not next to this program.
const VARIABLE: &str = "LONGWIRE";

/// Returns the path of `longwire`: the value of `LONGWIRE`, or the file next to this
/// program.
///
/// # Errors
///
/// If there is no such file.
pub fn path() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return Ok(path.into());
    }
    let path = std::env::current_exe()?.with_file_name("longwire");
    if !path.is_file() {
        return Err(Error::Failed(format!(
            "{} is missing: build it (cargo build --release), or set {VARIABLE}",
            path.display()
        )));
    }
    Ok(path)
}
