//! Folders and namespaces for several tests.

use std::path::PathBuf;

use longwire_io::net::NetNamespace;

/// A network namespace; `None` with a word where there may be none, which in
/// CI is a failure.
pub fn namespace() -> Option<NetNamespace> {
    match NetNamespace::new() {
        Ok(namespace) => Some(namespace),
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("CI must be able to make namespaces: {error}"),
    }
}

/// A folder that is removed when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("lwt-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
