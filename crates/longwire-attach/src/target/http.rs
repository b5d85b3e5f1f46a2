//! GET requests to container engines.

use std::io;
use std::path::Path;
use std::time::Duration;

use longwire_client::{Address, Client, ClientError, Response};

/// Timeout of a request. A hung engine may have a full accept queue.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Maximum size of a response, in bytes; a list of 1,000 containers is about 2 MB.
const RESPONSE_MAX: usize = 32 << 20;

/// Sends a GET request over a Unix socket.
///
/// # Errors
/// Errors of the socket; `TimedOut`; `InvalidData` for a status other than 200.
pub fn get(path: &Path, target: &str) -> io::Result<Response> {
    let response = Client::new(Address::Unix(path.to_owned()), None).and_then(|mut client| {
        client.set_time_limit(TIME_LIMIT);
        client.set_response_max(RESPONSE_MAX);
        client.fetch(target)
    });
    match response {
        Ok(response) if response.status == 200 => Ok(response),
        Ok(response) => Err(invalid(format!("status {}", response.status))),
        Err(ClientError::System(error) | ClientError::Unreachable { source: error, .. }) => {
            Err(error)
        }
        Err(ClientError::Timeout { limit, .. }) => {
            let what = format!("no answer within {} s", limit.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        }
        Err(ClientError::Protocol { reason, .. } | ClientError::ConnectionLost { reason, .. }) => {
            Err(invalid(reason))
        }
        Err(error) => Err(invalid(error.to_string())),
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
