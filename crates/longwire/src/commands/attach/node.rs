//! Client of this machine's node, for the commands of `attach`.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;

use longwire_client::node::{ATTACHMENTS, AttachmentList, AttachmentSpec, AttachmentView};
use longwire_client::{Address, Client};
use serde_json::{Value, json};

use crate::Error;
use crate::commands::node;
use crate::report::stderr::print_line;

/// Sends an attachment to the node.
pub(super) fn put(name: &str, spec: &AttachmentSpec) -> Result<AttachmentView, Error> {
    let Some(mut client) = client()? else {
        return Err(node::missing());
    };
    let answer = client.put(&format!("{ATTACHMENTS}/{name}"), &json!(spec))?;
    read(answer)
}

/// Returns all attachments of the node; empty without a node. Warns if a node does not
/// answer.
pub(super) fn views() -> Result<Vec<AttachmentView>, Error> {
    let Some(socket) = node::socket() else {
        return Ok(Vec::new());
    };
    let mut client = Client::new(Address::Unix(socket.clone()), None)?;
    match client.get(ATTACHMENTS) {
        Ok(answer) => {
            let list: AttachmentList = read(answer)?;
            Ok(list.attachments)
        }
        Err(error) => {
            // A killed node leaves its socket behind.
            let connected = UnixStream::connect(&socket).map_err(|error| error.kind());
            if !matches!(
                connected,
                Err(ErrorKind::ConnectionRefused | ErrorKind::NotFound)
            ) {
                print_line(format_args!("warning: without links of the node: {error}"));
            }
            Ok(Vec::new())
        }
    }
}

/// Returns whether the node has an attachment of this name.
pub(super) fn exists(name: &str) -> Result<bool, Error> {
    let Some(mut client) = client()? else {
        return Ok(false);
    };
    Ok(client.get(&format!("{ATTACHMENTS}/{name}")).is_ok())
}

/// Removes an attachment of the node.
pub(super) fn detach(name: &str) -> Result<(), Error> {
    if let Some(mut client) = client()? {
        client.delete(&format!("{ATTACHMENTS}/{name}"))?;
    }
    Ok(())
}

/// Returns a client of this user's or the system's node; `None` if there is none.
fn client() -> Result<Option<Client>, Error> {
    let client = node::socket().map(|socket| Client::new(Address::Unix(socket), None));
    Ok(client.transpose()?)
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, Error> {
    serde_json::from_value(answer).map_err(|error| {
        Error::failed(format!("the node answers as another version does: {error}"))
    })
}
