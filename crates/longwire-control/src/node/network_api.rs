//! Requests for the networks of a node.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use longwire_client::node::{NETWORKS, NetworkEnded, NetworkSpec, NetworkView};

use super::networks::{RelayPermit, relay};
use super::{Handlers, Networks, NodeApi, may_attach, path_of_run, target};
use crate::api::{read_head, take_permit};
use crate::guard::Caller;
use crate::refusal::Refusal;
use crate::reply::{Body, Reply};
use crate::route::Work;
use crate::stream;

pub(super) const NETWORK: Handlers<NetworkSpec, NetworkView, NetworkEnded> = Handlers {
    example: "a network such as {\"file\": \"[ports]…\", \"host\": \"west\"}",
    get: |node, name| node.networks()?.get(name).ok_or_else(|| missing(name)),
    put: |node, name, spec| Ok(node.networks()?.put(name, spec)?),
    remove: |node, name| {
        let none = || NetworkEnded {
            name: name.to_owned(),
            report: None,
        };
        Ok(node.networks()?.remove(name).unwrap_or_else(none))
    },
};

impl NodeApi {
    /// Answers a request for the run of a network. Without a run, the report of the last one is
    /// returned.
    pub(super) async fn in_network(
        self: Arc<NodeApi>,
        name: &str,
        rest: &str,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<Body>, Refusal> {
        let networks = self.networks()?;
        let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
        if !is_reading {
            may_attach(&caller)?;
        }
        if let Some(socket) = networks.socket(name) {
            let path = path_of_run(rest);
            let (route, _) = read_head(request.method().as_str(), &path, request.uri().query())?;
            let place = match route.work {
                Work::Stream(_) => stream::take_permit(&self.streams)?,
                _ => take_permit(&self.work)?,
            };
            let held = RelayPermit {
                _place: place,
                _working: caller.slot.work(),
            };
            let target = target(&path, &request)?;
            return relay(&socket, target, request, held).await;
        }
        let (name, is_report) = (name.to_owned(), is_reading && rest == "report");
        let reply = self.work(move |_| {
            let report = networks.last_report(&name).filter(|_| is_report);
            let view = || networks.get(&name).ok_or_else(|| missing(&name));
            match report {
                Some(report) => Reply::json(&report),
                None => Err(Refusal::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!(
                        "the network does not run: {}",
                        view()?
                            .reason
                            .unwrap_or_else(|| "it is starting".to_owned())
                    ),
                )),
            }
        });
        Ok(reply.await?.into_response())
    }

    pub(super) fn networks(&self) -> Result<Arc<dyn Networks>, Refusal> {
        let networks = self.attachments.networks();
        networks.ok_or_else(|| Refusal::missing("this node does not run networks"))
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::missing(format!("no network '{name}'; GET {NETWORKS} lists all"))
}
