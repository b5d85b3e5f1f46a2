//! The files of one change: read ahead, so that nothing that others wait for
//! is held while a file is waited for.
//!
//! A change is read twice. The first time the files it names are only noted;
//! [`ChangeFiles::fetch`] then reads them, with a deadline, and the second time
//! they are in memory.

use std::collections::{BTreeSet, HashMap};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longwire_engine::{Hook, Loader, Plugin};
use longwire_runtime::{FileAccess, FileLoader, FileReader, ReadLimits, try_plugin};

use crate::topology::Files;

/// The files that a change names have at most so many bytes together.
const BYTES_MAX: u64 = 64 << 20;

/// All links that a change sets read at most so many bytes of them.
const SERVED_MAX: u64 = 1 << 30;

/// The files of a change must have been read so soon.
const TIME: Duration = Duration::from_secs(10);

/// Why a change without access to files is refused.
const NO_ACCESS: &str = "changes over TCP read no files: start the run with --control-files DIR, \
                         and put the file into that directory";

type Parameters = Vec<(String, String)>;

/// The files of one change.
#[derive(Debug)]
pub(super) struct ChangeFiles {
    /// Makes plugins' states, which hooks of a link share.
    loader: Arc<FileLoader>,
    /// What the change may read; nothing if `None`.
    access: Option<FileAccess>,
    /// What the topology itself names, and so may be named again.
    own: Arc<BTreeSet<String>>,
    fetched: Mutex<Fetched>,
}

#[derive(Debug, Default)]
struct Fetched {
    wanted: BTreeSet<Wanted>,
    files: HashMap<PathBuf, Result<Arc<[u8]>, String>>,
    plugins: HashMap<(String, Parameters), Result<PathBuf, String>>,
    served: u64,
}

/// What was named and not yet read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    File(PathBuf),
    Plugin(String, Parameters),
}

/// What is left of a change's time and bytes.
struct Budget {
    until: Instant,
    bytes: u64,
}

impl ChangeFiles {
    /// The files of a change that may read what `access` says, and what is in
    /// `own`.
    pub fn new(
        loader: &Arc<FileLoader>,
        access: Option<FileAccess>,
        own: &Arc<BTreeSet<String>>,
    ) -> ChangeFiles {
        ChangeFiles {
            loader: Arc::clone(loader),
            access,
            own: Arc::clone(own),
            fetched: Mutex::default(),
        }
    }

    /// Reads what was wanted; `false` if nothing was. To be called with
    /// nothing held that others wait for.
    pub fn fetch(&self) -> bool {
        let mut fetched = self.fetched();
        let wanted = std::mem::take(&mut fetched.wanted);
        if wanted.is_empty() {
            return false;
        }
        // All of the change is read again.
        fetched.served = 0;
        let had = fetched.files.values().flatten();
        let had: usize = had.map(|bytes| bytes.len()).sum();
        drop(fetched);
        let mut budget = Budget {
            until: Instant::now() + TIME,
            bytes: BYTES_MAX.saturating_sub(had as u64),
        };
        for wanted in wanted {
            match wanted {
                Wanted::File(path) => {
                    let read = self.read_whole(&path, &mut budget);
                    self.fetched().files.insert(path, read);
                }
                Wanted::Plugin(path, parameters) => {
                    let left = budget.until.saturating_duration_since(Instant::now());
                    let tried = self.access_to(&path);
                    let tried =
                        tried.and_then(|access| try_plugin(&path, &access, &parameters, left));
                    self.fetched().plugins.insert((path, parameters), tried);
                }
            }
        }
        true
    }

    fn fetched(&self) -> MutexGuard<'_, Fetched> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn access_to(&self, path: &str) -> Result<FileAccess, String> {
        match &self.access {
            _ if self.own.contains(path) => Ok(FileAccess::Any),
            Some(access) => Ok(access.clone()),
            None => Err(NO_ACCESS.to_owned()),
        }
    }

    fn read_whole(&self, path: &Path, budget: &mut Budget) -> Result<Arc<[u8]>, String> {
        let own = path.to_str().is_some_and(|path| self.own.contains(path));
        let access = match own {
            true => FileAccess::Any,
            false => self.access.clone().ok_or(NO_ACCESS)?,
        };
        let limits = ReadLimits {
            bytes: if own {
                ReadLimits::default().bytes
            } else {
                budget.bytes
            },
            time: budget.until.saturating_duration_since(Instant::now()),
        };
        let mut bytes = Vec::new();
        let reader = FileReader::open(path, &access, limits, self.loader.stop());
        let mut reader = reader.map_err(|error| error.to_string())?;
        while let Some(piece) = reader.next_piece().map_err(|error| error.to_string())? {
            bytes.extend_from_slice(&piece);
        }
        if !own {
            budget.bytes -= bytes.len() as u64;
        }
        Ok(bytes.into())
    }

    /// What is in a file, if it was read already.
    fn content(&self, path: PathBuf) -> Result<Arc<[u8]>, String> {
        let mut fetched = self.fetched();
        let Some(read) = fetched.files.get(&path) else {
            fetched.wanted.insert(Wanted::File(path));
            return Err("not read yet".to_owned());
        };
        let bytes = read.clone()?;
        fetched.served += bytes.len() as u64;
        if fetched.served > SERVED_MAX {
            let error = format!(
                "the links of this change read more than {} MiB of files together; change fewer at \
                 a time",
                SERVED_MAX >> 20
            );
            return Err(error);
        }
        Ok(bytes)
    }
}

impl Loader for ChangeFiles {
    fn read(
        &self,
        path: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        take(&self.content(path.into())?)
    }

    fn plugin(
        &self,
        path: &str,
        hook: Hook,
        parameters: &[(String, String)],
    ) -> Result<Box<dyn Plugin>, String> {
        let key = (path.to_owned(), parameters.to_vec());
        let mut fetched = self.fetched();
        let Some(tried) = fetched.plugins.get(&key) else {
            fetched.wanted.insert(Wanted::Plugin(key.0, key.1));
            return Err("not loaded yet".to_owned());
        };
        let path = tried.clone()?;
        drop(fetched);
        self.loader
            .plugin(&path.to_string_lossy(), hook, parameters)
    }
}

impl Files for ChangeFiles {
    fn open_rows(&self, folder: &Path, name: &str) -> Result<Box<dyn Read>, String> {
        let path = match &self.access {
            Some(FileAccess::Any) => folder.join(name),
            _ => name.into(),
        };
        Ok(Box::new(Cursor::new(self.content(path)?)))
    }

    fn may_quote(&self) -> bool {
        false
    }
}
