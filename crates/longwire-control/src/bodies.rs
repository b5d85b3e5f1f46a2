//! Bodies of requests, and how much memory they take together.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal::Refusal;
use super::time_limit::TimeLimit;

/// The largest body.
pub const BODY_MAX: usize = 16 << 20;

/// A body must be there so soon.
const BODY_TIME: Duration = Duration::from_secs(30);

/// So much of each body does not count: connections bound it.
const SMALL: usize = 64 << 10;

/// The most that all others together may have.
const TOGETHER_MAX: usize = 64 << 20;

/// The unit in which it is counted.
const UNIT: usize = 4 << 10;

/// The memory that request bodies may take.
pub struct Bodies(Arc<Semaphore>);

/// A body, and its share of what all may take.
pub struct RequestBody {
    /// Its bytes.
    pub bytes: Vec<u8>,
    share: Vec<OwnedSemaphorePermit>,
}

/// Whether a body may take so much memory that it is worth giving back.
pub fn is_large(body: &Incoming) -> bool {
    let most = body.size_hint().upper();
    most.is_none_or(|most| most > SMALL as u64)
}

impl Bodies {
    /// None so far.
    pub fn new() -> Bodies {
        Bodies(Arc::new(Semaphore::new(TOGETHER_MAX / UNIT)))
    }

    /// Reads a body.
    ///
    /// # Errors
    /// 413 when it is too large, 408 when it does not come in time, 503 when
    /// others take all memory there is for bodies, 400 when it ends early.
    pub async fn read(&self, mut body: Incoming) -> Result<RequestBody, Refusal> {
        // Announced, it need not be read.
        if body.size_hint().lower() > BODY_MAX as u64 {
            return Err(too_large());
        }
        let mut received = RequestBody {
            bytes: Vec::new(),
            share: Vec::new(),
        };
        let mut room = SMALL;
        let mut limit = TimeLimit::new(BODY_TIME);
        loop {
            // For each part again: it may be one of many that have arrived in time.
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = limit.used_up() => return Err(late()),
            };
            let Some(frame) = frame else {
                return Ok(received);
            };
            let frame = frame.map_err(|_| Refusal::bad("the body ends early"))?;
            let Some(data) = frame.data_ref() else {
                continue;
            };
            let length = received.bytes.len() + data.len();
            if length > BODY_MAX {
                return Err(too_large());
            }
            while length > room {
                // Doubled, as the memory is.
                let more = room.min(BODY_MAX - room);
                let units = more.div_ceil(UNIT) as u32;
                let share = Arc::clone(&self.0).try_acquire_many_owned(units);
                received.share.push(share.map_err(|_| busy())?);
                room += more;
                received.bytes.reserve_exact(room - received.bytes.len());
            }
            received.bytes.extend_from_slice(data);
        }
    }
}

fn late() -> Refusal {
    let error = format!("the body was not there after {} s", BODY_TIME.as_secs());
    Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
}

fn too_large() -> Refusal {
    let error = format!("the body has more than {} MiB", BODY_MAX >> 20);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
}

fn busy() -> Refusal {
    Refusal::busy(format!(
        "requests with {} MiB together are being read already; try again",
        TOGETHER_MAX >> 20
    ))
}
