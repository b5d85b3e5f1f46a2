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

use longwire_engine::{Hook, Loader, Plugin, TakePiece};
use longwire_runtime::{FileAccess, FileLoader, FileReader, ReadLimits, try_plugin};

use longwire_topology::Files;

/// Limits on the files of one change.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangeLimits {
    /// The size of all files together, in bytes, without those that the
    /// topology itself names.
    bytes: u64,
    /// The time in which all files must have been read; `None` with the limit
    /// of each file alone.
    time: Option<Duration>,
}

impl ChangeLimits {
    /// For a request to the control API: its client is not the user who
    /// started the run.
    pub const REQUEST: ChangeLimits = ChangeLimits {
        bytes: 64 << 20,
        time: Some(Duration::from_secs(10)),
    };

    /// For a command of the scenario: as its first commands, which are
    /// prepared before the start.
    pub const SCENARIO: ChangeLimits = ChangeLimits {
        bytes: u64::MAX,
        time: None,
    };
}

type Parameters = Vec<(String, String)>;

/// The files of one change.
#[derive(Debug)]
pub(super) struct ChangeFiles {
    /// Makes plugins' states, which hooks of a link share.
    loader: Arc<FileLoader>,
    /// The files that the change may read.
    access: FileAccess,
    /// The files that the topology names, which a change may name too.
    own: Arc<BTreeSet<String>>,
    limits: ChangeLimits,
    fetched: Mutex<Fetched>,
}

#[derive(Debug, Default)]
struct Fetched {
    wanted: BTreeSet<Wanted>,
    files: HashMap<PathBuf, Result<Arc<[u8]>, String>>,
    plugins: HashMap<(String, Parameters), Result<PathBuf, String>>,
}

/// A file that was named and not yet read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    File(PathBuf),
    Plugin(String, Parameters),
}

/// The rest of a change's time and bytes.
struct Budget {
    /// `None` without a limit.
    until: Option<Instant>,
    bytes: u64,
}

impl Budget {
    /// The time for one more file, at most `usual`.
    fn time(&self, usual: Duration) -> Duration {
        match self.until {
            Some(until) => until.saturating_duration_since(Instant::now()),
            None => usual,
        }
    }
}

impl ChangeFiles {
    /// The files of a change that may read what `access` says, and what is in
    /// `own`.
    pub fn new(
        loader: &Arc<FileLoader>,
        access: FileAccess,
        own: &Arc<BTreeSet<String>>,
        limits: ChangeLimits,
    ) -> ChangeFiles {
        ChangeFiles {
            loader: Arc::clone(loader),
            access,
            own: Arc::clone(own),
            limits,
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
        let had = fetched.files.values().flatten();
        let had: usize = had.map(|bytes| bytes.len()).sum();
        drop(fetched);
        let mut budget = Budget {
            until: self.limits.time.map(|time| Instant::now() + time),
            bytes: self.limits.bytes.saturating_sub(had as u64),
        };
        for wanted in wanted {
            match wanted {
                Wanted::File(path) => {
                    let read = self.read_whole(&path, &mut budget);
                    self.fetched().files.insert(path, read);
                }
                Wanted::Plugin(path, parameters) => {
                    let left = budget.time(ReadLimits::default().time);
                    let access = self.access_to(&path);
                    let tried = self.loader.check_plugin(&path, access);
                    let tried = tried.and_then(|()| try_plugin(&path, access, &parameters, left));
                    self.fetched().plugins.insert((path, parameters), tried);
                }
            }
        }
        true
    }

    fn fetched(&self) -> MutexGuard<'_, Fetched> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The topology's own files have been read before.
    fn access_to(&self, path: &str) -> &FileAccess {
        if self.own.contains(path) {
            &FileAccess::Any
        } else {
            &self.access
        }
    }

    fn read_whole(&self, path: &Path, budget: &mut Budget) -> Result<Arc<[u8]>, String> {
        let own = path.to_str().is_some_and(|path| self.own.contains(path));
        let access = self.access_to(path.to_str().unwrap_or_default());
        let usual = ReadLimits::default();
        let limits = ReadLimits {
            bytes: if own {
                usual.bytes
            } else {
                budget.bytes.min(usual.bytes)
            },
            time: budget.time(usual.time),
        };
        let mut bytes = Vec::new();
        let reader = FileReader::open(path, access, limits, self.loader.stop());
        let mut reader = reader.map_err(|error| error.to_string())?;
        while let Some(piece) = reader.next_piece().map_err(|error| error.to_string())? {
            bytes.extend_from_slice(&piece);
        }
        if !own {
            budget.bytes -= bytes.len() as u64;
        }
        Ok(bytes.into())
    }

    /// The content of a file, if it was read already.
    fn content(&self, path: PathBuf) -> Result<Arc<[u8]>, String> {
        let mut fetched = self.fetched();
        let Some(read) = fetched.files.get(&path) else {
            fetched.wanted.insert(Wanted::File(path));
            return Err("not read yet".to_owned());
        };
        read.clone()
    }
}

impl Loader for ChangeFiles {
    fn read(&self, path: &str, take: TakePiece<'_>) -> Result<(), String> {
        take(&self.content(path.into())?)
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
            FileAccess::Any => folder.join(name),
            _ => name.into(),
        };
        Ok(Box::new(Cursor::new(self.content(path)?)))
    }

    fn access(&self) -> &FileAccess {
        &self.access
    }

    /// Its client is not the user who started the run.
    fn may_quote(&self) -> bool {
        false
    }
}
