//! The live view: histories and tables that clients read, and a page in the browser.
//!
//! [`crate::ViewConfig`] adds a TCP address to the control API, at which static files are served
//! without a token and everything else with one of two tokens that the run makes. With it the
//! run keeps the last minutes of a few directions from its start ([`history`]); otherwise,
//! while a client reads them. The rates of all directions ([`table`]) and the flows of one
//! ([`flows`]) are kept while a client reads them.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longwire_fabric::Controller;

use tokio::sync::Notify;

use crate::view_config::{Judge, Judgement};

pub mod answers;
pub mod columns;
pub mod fidelity;
pub mod flows;
pub mod history;
pub mod page;
pub mod sampler;
pub mod stream;
pub mod table;

use self::fidelity::FirstArtifact;
use self::flows::FlowReader;
use self::history::History;
use self::table::Table;

/// The period of the history.
pub const PERIOD: Duration = Duration::from_millis(100);

/// Ticks between readings of all directions.
const TICKS_PER_SECOND: u64 = 10;

/// The tokens of a view, in hexadecimal digits.
#[derive(Clone)]
pub struct ViewTokens {
    /// The token with which everything may be changed.
    pub full: String,
    /// The token with which everything may be read.
    pub read: String,
}

impl ViewTokens {
    /// Returns new tokens.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> io::Result<ViewTokens> {
        let mut source = File::open("/dev/urandom")?;
        let mut token = || -> io::Result<String> {
            let mut bytes = [0; 24];
            source.read_exact(&mut bytes)?;
            Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        };
        Ok(ViewTokens {
            full: token()?,
            read: token()?,
        })
    }
}

/// The histories and tables that clients read.
#[derive(Default)]
pub struct View {
    /// The run keeps histories from its start.
    keeps_all: bool,
    wanted: Notify,
    history: Mutex<History>,
    table: Mutex<Table>,
    first: Mutex<FirstArtifact>,
    flows: Mutex<FlowReader>,
    judge: Option<Judge>,
    judged: Mutex<Option<Judged>>,
}

/// A judgement, when it was made, and how long that took.
struct Judged {
    judgement: Judgement,
    at: Instant,
    cost: Duration,
}

impl View {
    /// Returns the view of a run that has just started; `keeps_all` if it keeps histories
    /// that no client reads.
    pub fn new(keeps_all: bool, judge: Option<Judge>) -> View {
        View {
            keeps_all,
            judge,
            ..View::default()
        }
    }

    /// Whether histories are kept from the start of the run.
    pub fn keeps_all(&self) -> bool {
        self.keeps_all
    }

    /// Whether no client reads anything that needs samples.
    fn is_idle(&self) -> bool {
        let read =
            || !self.history().is_empty() || self.table().is_read() || self.flows().is_read();
        !self.keeps_all && !read()
    }

    /// Waits until a client reads something.
    async fn wanted(&self) {
        self.wanted.notified().await;
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> MutexGuard<'_, FirstArtifact> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flows(&self) -> MutexGuard<'_, FlowReader> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the verdict on the run so far. Of a large network it takes long: it is made
    /// again so seldom that it costs at most a hundredth of a core.
    fn judgement(&self, controller: &Controller) -> Judgement {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |last: &&Judged| last.at.elapsed() < 100 * last.cost;
        if let Some(last) = judged.as_ref().filter(recent) {
            return last.judgement.clone();
        }
        let start = Instant::now();
        let judgement = self
            .judge
            .map_or_else(Judgement::default, |judge| judge(controller));
        *judged = Some(Judged {
            judgement: judgement.clone(),
            at: Instant::now(),
            cost: start.elapsed(),
        });
        judgement
    }

    /// Takes the samples of a period.
    fn sample(&self, controller: &Controller, tick: u64) {
        if tick.is_multiple_of(TICKS_PER_SECOND) {
            self.history().refresh(self.keeps_all, controller);
            self.table().refresh(controller);
            if self.keeps_all {
                self.first().look(controller);
            }
            self.flows().refresh(controller);
        }
        self.history().sample(controller);
    }
}
