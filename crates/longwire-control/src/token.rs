//! Token files.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use longwire_capture::open;

use crate::error::ControlError;

/// Permitted lengths of a token, in bytes.
const TOKEN_LENGTHS: std::ops::RangeInclusive<usize> = 16..=4096;

/// Reads the token in the first line of a file.
///
/// # Errors
/// If the file is unreadable, readable by others, or holds no token.
pub fn read_token(path: &Path) -> Result<Vec<u8>, ControlError> {
    let refuse = |why: String| Err(ControlError::Usage(format!("{}: {why}", path.display())));
    let failed = ControlError::file(path, "cannot read the token");
    let file = open::to_read(path).map_err(&failed)?;
    let mode = file.metadata().map_err(&failed)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return refuse(format!(
            "mode {mode:o} lets other users read the token; run `chmod 600`, and create a new \
             token if this machine has other users"
        ));
    }
    let mut line = Vec::new();
    let most = *TOKEN_LENGTHS.end() as u64 + 2;
    let read = BufReader::new(file.take(most)).read_until(b'\n', &mut line);
    read.map_err(failed)?;
    let token = line.trim_ascii_end().to_vec();
    if !TOKEN_LENGTHS.contains(&token.len()) {
        return refuse(format!(
            "the first line has {} characters; a token has {} to {}; create one with `openssl \
             rand -hex 32`",
            token.len(),
            TOKEN_LENGTHS.start(),
            TOKEN_LENGTHS.end()
        ));
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return refuse(
            "the first line has characters that a header cannot carry; create a token with \
             `openssl rand -hex 32`"
                .to_owned(),
        );
    }
    Ok(token)
}
