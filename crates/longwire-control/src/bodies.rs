//! Request bodies, with a common memory limit.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal::Refusal;
use longwire_client::time_limit::TimeLimit;

/// Longest body, in bytes.
pub const BODY_MAX: usize = 16 << 20;

/// Time limit for receiving a body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Bytes of each body that are exempt from [`TOGETHER_MAX`]; the connection limit bounds them.
const SMALL: usize = 64 << 10;

/// Limit of the bytes of all bodies beyond [`SMALL`].
const TOGETHER_MAX: usize = 64 << 20;

/// Granularity of the limit, in bytes.
const UNIT: usize = 4 << 10;

/// Memory budget of request bodies.
pub struct Bodies(Arc<Semaphore>);

/// A body with its share of the budget.
pub struct RequestBody {
    /// Bytes.
    pub bytes: Vec<u8>,
    share: Vec<OwnedSemaphorePermit>,
}

/// Whether a body is so large that its memory should be returned to the system.
pub fn is_large(body: &Incoming) -> bool {
    let most = body.size_hint().upper();
    most.is_none_or(|most| most > SMALL as u64)
}

impl Bodies {
    /// Creates an unused budget.
    pub fn new() -> Bodies {
        Bodies(Arc::new(Semaphore::new(TOGETHER_MAX / UNIT)))
    }

    /// Reads a body.
    ///
    /// # Errors
    /// 413 if it is too long, 408 on timeout, 503 if the budget is exhausted, 400 if it is truncated.
    pub async fn read(&self, mut body: Incoming) -> Result<RequestBody, Refusal> {
        // Refuses an announced length without reading.
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
            // Checked per frame: many bodies may have arrived at the same time.
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = limit.used_up() => return Err(late()),
            };
            let Some(frame) = frame else {
                return Ok(received);
            };
            let frame = frame.map_err(|_| Refusal::bad("truncated body"))?;
            let Some(data) = frame.data_ref() else {
                continue;
            };
            let length = received.bytes.len() + data.len();
            if length > BODY_MAX {
                return Err(too_large());
            }
            while length > room {
                // The vector doubles its capacity.
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
    let error = format!("no complete body within {} s", BODY_TIME.as_secs());
    Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
}

fn too_large() -> Refusal {
    let error = format!("the body is longer than {} MiB", BODY_MAX >> 20);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
}

fn busy() -> Refusal {
    Refusal::busy(format!(
        "requests with {} MiB in total are being read; try again",
        TOGETHER_MAX >> 20
    ))
}
