//! Files named by a topology or a change.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use longwire_engine::{Hook, Loader, Plugin, TakePiece};
use longwire_runtime::{FileAccess, FileLoader};

/// Opens and loads the files named by a topology or a change.
pub trait Files: Loader + Debug + Send + Sync {
    /// Opens a CSV file of links, relative to the topology's folder.
    ///
    /// # Errors
    /// If it cannot be read, with the reason.
    fn open_rows(&self, folder: &Path, name: &str) -> Result<Box<dyn Read>, String>;

    /// Returns which files may be named.
    fn access(&self) -> &FileAccess;

    /// Returns whether problems may quote file contents.
    fn may_quote(&self) -> bool {
        self.access().may_quote()
    }

    /// Returns the files and plugins named by models so far.
    fn named(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
}

/// Files read at startup. By default, all regular files that the user may read.
#[derive(Debug, Default)]
pub struct StartFiles {
    loader: FileLoader,
    named: Mutex<BTreeSet<String>>,
}

impl StartFiles {
    /// Allows all regular files that the user may read.
    pub fn any() -> Arc<dyn Files> {
        StartFiles::of(FileLoader::new())
    }

    /// Allows the files that `loader` may read.
    pub fn of(loader: FileLoader) -> Arc<dyn Files> {
        Arc::new(StartFiles {
            loader,
            named: Mutex::default(),
        })
    }

    fn note(&self, path: &str) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.insert(path.to_owned());
    }
}

impl Loader for StartFiles {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        self.note(path);
        self.loader.read(path, take)
    }

    fn begin_link(&self) {
        self.loader.begin_link();
    }

    fn plugin(
        &self,
        path: &str,
        hook: Hook,
        parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        self.note(path);
        self.loader.plugin(path, hook, parameters)
    }
}

impl Files for StartFiles {
    fn open_rows(&self, folder: &Path, name: &str) -> Result<Box<dyn Read>, String> {
        let checked = self.access().check(Path::new(name));
        let reader = checked.and_then(|()| self.loader.open(&folder.join(name)));
        Ok(Box::new(reader.map_err(|error| error.to_string())?))
    }

    fn access(&self) -> &FileAccess {
        self.loader.access()
    }

    fn named(&self) -> BTreeSet<String> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.clone()
    }
}
