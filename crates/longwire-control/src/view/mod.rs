//! The live view: histories, tables, and a page in the browser.
//!
//! [`crate::ViewConfig`] adds a TCP address to the control API. Static files are served without a
//! token; other requests need one of two random tokens. With a view, the run records the history
//! ([`history`]) of some directions from its start; without one, only while a client reads it.
//! Rates of all directions ([`table`]) and flows of one direction ([`flows`]) are recorded while a
//! client reads them.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longwire_network::Controller;
use tokio::sync::Notify;

use crate::config::{Judge, Judgement};

pub mod answers;
pub mod fidelity;
pub mod flows;
pub mod history;
pub mod page;
pub mod table;

use self::fidelity::FirstArtifact;
use self::flows::FlowReader;
use self::history::History;
use self::table::Table;

/// Period of the history.
pub const PERIOD: Duration = Duration::from_millis(100);

/// Number of periods between readings of all directions.
const TICKS_PER_SECOND: u64 = 10;

/// Returns random tokens in hexadecimal: one for changes, and one for reading.
///
/// # Errors
/// If the system has no random bytes.
pub fn random_tokens() -> io::Result<[String; 2]> {
    let mut source = File::open("/dev/urandom")?;
    let mut token = || -> io::Result<String> {
        let mut bytes = [0; 24];
        source.read_exact(&mut bytes)?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    };
    Ok([token()?, token()?])
}

fn lock<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Histories and tables of a run.
#[derive(Default)]
pub struct View {
    /// Whether histories are recorded from the start.
    pub keeps_all: bool,
    wanted: Notify,
    history: Mutex<History>,
    table: Mutex<Table>,
    first: Mutex<FirstArtifact>,
    flows: Mutex<FlowReader>,
    judge: Option<Judge>,
    judged: Mutex<Option<CachedVerdict>>,
}

/// A verdict, its time, and how long it took.
struct CachedVerdict {
    judgement: Judgement,
    at: Instant,
    cost: Duration,
}

impl View {
    /// Creates the view of a run that is starting; `keeps_all` records histories even without
    /// clients.
    pub fn new(keeps_all: bool, judge: Option<Judge>) -> View {
        View {
            keeps_all,
            judge,
            ..View::default()
        }
    }

    /// Returns whether no client needs samples.
    fn is_idle(&self) -> bool {
        let read = || {
            !lock(&self.history).is_empty()
                || lock(&self.table).is_read()
                || lock(&self.flows).is_read()
        };
        !self.keeps_all && !read()
    }

    /// Returns the verdict on the run so far. Caches it, so that judging a large network takes at
    /// most 1 % of a core.
    fn judgement(&self, controller: &Controller) -> Judgement {
        let mut judged = lock(&self.judged);
        let recent = |last: &&CachedVerdict| last.at.elapsed() < 100 * last.cost;
        if let Some(last) = judged.as_ref().filter(recent) {
            return last.judgement.clone();
        }
        let start = Instant::now();
        let judgement = self
            .judge
            .map_or_else(Judgement::default, |judge| judge(controller));
        *judged = Some(CachedVerdict {
            judgement: judgement.clone(),
            at: Instant::now(),
            cost: start.elapsed(),
        });
        judgement
    }

    /// Takes the samples of a period.
    fn sample(&self, controller: &Controller, tick: u64) {
        if tick.is_multiple_of(TICKS_PER_SECOND) {
            lock(&self.history).refresh(self.keeps_all, controller);
            lock(&self.table).refresh(controller);
            if self.keeps_all {
                lock(&self.first).update(controller);
            }
            lock(&self.flows).refresh(controller);
        }
        lock(&self.history).sample(controller);
    }
}
