//! The files that a topology, or a change of one, names.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use longwire_engine::{Hook, Loader, Plugin, TakePiece};
use longwire_runtime::FileLoader;

/// Opens and loads what a topology or a change names.
pub trait Files: Loader + Debug + Send + Sync {
    /// Opens a CSV file of links. `folder` is that of the topology's file.
    ///
    /// # Errors
    /// Why it is not read.
    fn open_rows(&self, folder: &Path, name: &str) -> Result<Box<dyn Read>, String>;

    /// Whether problems may quote what is in a file.
    fn may_quote(&self) -> bool;

    /// The names of files and plugins that models were given so far.
    fn named(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
}

/// Files as the command line reads them: all regular ones that this user may
/// read.
#[derive(Debug, Default)]
pub(super) struct StartFiles {
    loader: FileLoader,
    named: Mutex<BTreeSet<String>>,
}

impl StartFiles {
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
        let reader = self.loader.open(&folder.join(name));
        Ok(Box::new(reader.map_err(|error| error.to_string())?))
    }

    fn may_quote(&self) -> bool {
        true
    }

    fn named(&self) -> BTreeSet<String> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.clone()
    }
}
