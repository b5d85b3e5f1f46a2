//! Files named by a change, read without holding a lock.
//!
//! A change is parsed twice. The first pass records the files that the change names,
//! [`ChangeFiles::fetch`] reads them, and the second pass uses the contents in memory.

use std::collections::{BTreeSet, HashMap};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use longwire_engine::{Hook, Loader, Plugin, TakePiece};
use longwire_runtime::sync::locked;
use longwire_runtime::{FileAccess, FileLoader, FileReader, ReadLimits, try_plugin};

use longwire_topology::Files;

/// Limits on the files of one change.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangeLimits {
    /// Maximum total bytes of all files except the topology's.
    bytes: u64,
    /// Time limit for all files together; `None` leaves only the limit for each file.
    time: Option<Duration>,
}

impl ChangeLimits {
    /// Limits for requests to the control API. Its clients may be other users than the one who
    /// started the run.
    pub const REQUEST: ChangeLimits = ChangeLimits {
        bytes: 64 << 20,
        time: Some(Duration::from_secs(10)),
    };

    /// Limits for scenario commands: the same as for files read before the start.
    pub const SCENARIO: ChangeLimits = ChangeLimits {
        bytes: u64::MAX,
        time: None,
    };
}

type Parameters = Vec<(String, String)>;

/// The files of one change.
#[derive(Debug)]
pub(super) struct ChangeFiles {
    /// Creates plugin states, shared by a link's hooks.
    loader: Arc<FileLoader>,
    access: FileAccess,
    /// Files named by the topology, which a change may also use.
    own: Arc<BTreeSet<String>>,
    limits: ChangeLimits,
    fetched: Mutex<Fetched>,
}

#[derive(Debug, Default)]
struct Fetched {
    pending: BTreeSet<PendingFile>,
    files: HashMap<PathBuf, Result<Arc<[u8]>, String>>,
    plugins: HashMap<(String, Parameters), Result<PathBuf, String>>,
}

/// A named file that has not been read yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PendingFile {
    File(PathBuf),
    Plugin(String, Parameters),
}

/// A change's remaining time and bytes.
struct Budget {
    /// Deadline; `None` if there is no limit.
    until: Option<Instant>,
    bytes: u64,
}

impl Budget {
    /// Returns the time left for one file, or `usual` if there is no deadline.
    fn time(&self, usual: Duration) -> Duration {
        match self.until {
            Some(until) => until.saturating_duration_since(Instant::now()),
            None => usual,
        }
    }
}

impl ChangeFiles {
    /// Creates the file set of a change. The change may name files that `access` permits and files
    /// in `own`.
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

    /// Reads pending files; returns `false` if there were none. Blocks, so the caller must not hold
    /// a lock.
    pub fn fetch(&self) -> bool {
        let mut fetched = locked(&self.fetched);
        let pending = std::mem::take(&mut fetched.pending);
        if pending.is_empty() {
            return false;
        }
        let had = fetched.files.values().flatten();
        let had: usize = had.map(|bytes| bytes.len()).sum();
        drop(fetched);
        let mut budget = Budget {
            until: self.limits.time.map(|time| Instant::now() + time),
            bytes: self.limits.bytes.saturating_sub(had as u64),
        };
        for pending in pending {
            match pending {
                PendingFile::File(path) => {
                    let read = self.read_whole(&path, &mut budget);
                    locked(&self.fetched).files.insert(path, read);
                }
                PendingFile::Plugin(path, parameters) => {
                    let left = budget.time(ReadLimits::default().time);
                    let access = self.access_to(&path);
                    let tried = self.loader.check_plugin(&path, access);
                    let tried = tried.and_then(|()| try_plugin(&path, access, &parameters, left));
                    locked(&self.fetched)
                        .plugins
                        .insert((path, parameters), tried);
                }
            }
        }
        true
    }

    /// Returns the file access for a path; the topology's own files are always permitted.
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

    /// Returns a file's content, or records the file as pending.
    fn content(&self, path: PathBuf) -> Result<Arc<[u8]>, String> {
        let mut fetched = locked(&self.fetched);
        let Some(read) = fetched.files.get(&path) else {
            fetched.pending.insert(PendingFile::File(path));
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
        let mut fetched = locked(&self.fetched);
        let Some(tried) = fetched.plugins.get(&key) else {
            fetched.pending.insert(PendingFile::Plugin(key.0, key.1));
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

    /// Always false: the client may be another user than the one who started the run.
    fn may_quote(&self) -> bool {
        false
    }
}
