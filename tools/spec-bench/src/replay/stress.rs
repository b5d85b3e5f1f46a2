//! Load on the machine during a replay: the kinds of stress used by TCPivo.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use clap::ValueEnum;
use longwire_runtime::host;

use longwire::Error;

/// The kind of load on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StressKind {
    /// No load
    None,
    /// On each core, a file of 8 MB is opened, read, written and closed
    /// without pause
    Disk,
    /// On each core, memory beyond any cache is copied without pause
    Memory,
}

impl StressKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            StressKind::None => "idle",
            StressKind::Disk => "disk",
            StressKind::Memory => "memory",
        }
    }
}

/// Size in bytes of the file that threads read and write.
const FILE_LEN: usize = 8_000_000;

/// Bytes per copy.
const COPY_LEN: usize = 64 << 20;

/// Busy threads, one per core. The scheduler treats a thread of normal priority like a process.
pub(super) struct Stress {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Stress {
    /// Starts the threads; returns once all are busy.
    pub fn start(kind: StressKind, directory: &Path) -> Result<Stress, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let count = match kind {
            StressKind::None => 0,
            _ => host::cores(),
        };
        let (ready, all_ready) = std::sync::mpsc::channel();
        let mut threads = Vec::new();
        for number in 0..count {
            let path = directory.join(format!("stress-{number}"));
            let (stop, ready) = (Arc::clone(&stop), ready.clone());
            let work = move || match kind {
                StressKind::Memory => {
                    copy_memory(&stop, &ready);
                    Ok(())
                }
                _ => read_and_write(&path, &stop, &ready),
            };
            let thread = std::thread::Builder::new().name("stress".to_owned());
            threads.push(thread.spawn(work)?);
        }
        drop(ready);
        // Fewer threads report if one has failed; `stop` returns its error.
        all_ready.iter().take(count).for_each(drop);
        Ok(Stress { stop, threads })
    }

    /// Ends the threads.
    pub fn stop(mut self) -> Result<(), Error> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let result = thread.join();
            result
                .map_err(|_| Error::Failed("a stress thread ended unexpectedly".to_owned()))??;
        }
        Ok(())
    }
}

impl Drop for Stress {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

type Ready = std::sync::mpsc::Sender<()>;

fn read_and_write(path: &PathBuf, stop: &AtomicBool, ready: &Ready) -> io::Result<()> {
    let mut bytes = vec![7; FILE_LEN];
    File::create(path)?.write_all(&bytes)?;
    // Fails only if `start` has already returned, which then no longer waits for this thread.
    let _ = ready.send(());
    while !stop.load(Ordering::Relaxed) {
        let mut file = File::options().read(true).write(true).open(path)?;
        file.read_exact(&mut bytes)?;
        file = File::options().write(true).open(path)?;
        file.write_all(&bytes)?;
    }
    std::fs::remove_file(path)
}

fn copy_memory(stop: &AtomicBool, ready: &Ready) {
    let mut from = vec![1u8; COPY_LEN];
    let mut to = vec![2u8; COPY_LEN];
    let _ = ready.send(());
    while !stop.load(Ordering::Relaxed) {
        to.copy_from_slice(std::hint::black_box(&from));
        std::mem::swap(&mut from, &mut to);
    }
    std::hint::black_box(&to);
}
