//! Files for models: what the engine, which does no I/O, is given to read
//! them with.

use std::fs::File;
use std::io::{ErrorKind, Read};

use longwire_engine::loader::{Hook, Loader, Plugin};

/// How much is read at once: enough that system calls cost nothing beside
/// what is done with the bytes.
const PIECE: usize = 64 * 1024;

/// Reads the files that models name.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileLoader;

impl FileLoader {
    /// A loader of files as this process sees them.
    pub fn new() -> FileLoader {
        FileLoader
    }
}

impl Loader for FileLoader {
    fn read(
        &self,
        path: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        // Both directions of a link may read a file, and standard input can
        // be read only once.
        if path == "-" {
            return Err("standard input is not read here; name a file".to_owned());
        }
        let mut file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => "there is no such file".to_owned(),
            ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
            _ => error.to_string(),
        })?;
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if metadata.is_dir() {
            return Err("it is a directory; name a file in it".to_owned());
        }
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => take(&piece[..length])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot be read to its end: {error}")),
            }
        }
    }

    fn plugin(
        &self,
        _path: &str,
        _hook: Hook,
        _parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        Err("this program cannot load plugins".to_owned())
    }
}
