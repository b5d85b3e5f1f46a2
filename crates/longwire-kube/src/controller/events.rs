//! Events about resources.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use super::sums::Notice;

/// Time after which a repeated event counts as a new one; that of kube's [`Recorder`].
const REPEATED_WITHIN: Duration = Duration::from_secs(6 * 60);

/// Maximum length of a note that the API server accepts, in bytes.
const NOTE_MAX: usize = 1024;

/// Publishes events. An event repeated within minutes is counted instead.
///
/// Each note has its own recorder, because recorders ignore notes when comparing events.
#[derive(Clone)]
pub(super) struct EventPublisher {
    client: Client,
    reporter: Reporter,
    /// Recorders by note, each with the time of its last use.
    recorders: Arc<Mutex<BTreeMap<String, (Recorder, Instant)>>>,
}

impl EventPublisher {
    pub fn new(client: Client, reporter: Reporter) -> EventPublisher {
        EventPublisher {
            client,
            reporter,
            recorders: Arc::default(),
        }
    }

    /// Publishes an event about a resource.
    ///
    /// # Errors
    /// If the API server fails.
    pub async fn publish(
        &self,
        resource: &ObjectReference,
        notice: Notice,
    ) -> Result<(), kube::Error> {
        let note = shortened(notice.note);
        let recorder = self.recorder_of(&note);
        let event = Event {
            type_: if notice.is_warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: notice.reason.to_owned(),
            note: Some(note),
            action: "Attach".to_owned(),
            secondary: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(notice.node),
                ..ObjectReference::default()
            }),
        };
        recorder.publish(&event, resource).await
    }

    fn recorder_of(&self, note: &str) -> Recorder {
        let recorders = self.recorders.lock();
        let mut recorders = recorders.unwrap_or_else(PoisonError::into_inner);
        recorders.retain(|_, (_, used_at)| used_at.elapsed() < REPEATED_WITHIN);
        let recorder = recorders.get(note).map(|(recorder, _)| recorder.clone());
        let recorder =
            recorder.unwrap_or_else(|| Recorder::new(self.client.clone(), self.reporter.clone()));
        recorders.insert(note.to_owned(), (recorder.clone(), Instant::now()));
        recorder
    }
}

/// Truncates a note to the API server's limit.
fn shortened(mut note: String) -> String {
    let mut end = note.len().min(NOTE_MAX);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    note.truncate(end);
    note
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::*;
    use crate::fake_api::FakeApi;

    #[tokio::test]
    async fn events_of_other_nodes_or_with_other_notes_are_other_events() {
        let api = FakeApi::default();
        let events = EventPublisher::new(api.client(), Reporter::from("test"));
        let link = ObjectReference {
            name: Some("far".to_owned()),
            namespace: Some("shop".to_owned()),
            ..ObjectReference::default()
        };
        let refused = [
            ("m1", "'soon'"),
            ("m2", "'soon'"),
            ("m1", "'later'"),
            ("m1", "'soon'"),
        ];
        for (node, note) in refused {
            let notice = Notice {
                node: node.to_owned(),
                is_warning: true,
                reason: "Refused",
                note: note.to_owned(),
            };
            events.publish(&link, notice).await.expect("published");
        }
        let changes = api.changes();
        let notes = changes.iter().map(|change| {
            let (node, note) = (&change.body["related"]["name"], &change.body["note"]);
            let is_new = change.method == Method::POST;
            (is_new, node.as_str().unwrap(), note.as_str().unwrap())
        });
        let notes: Vec<_> = notes.collect();
        let [one, two, three, four] = refused.map(|(node, note)| (true, node, note));
        assert_eq!(notes, [one, two, three, (false, four.1, four.2)]);
    }

    #[test]
    fn notes_are_truncated() {
        let long = format!("{}é{}", "x".repeat(NOTE_MAX - 1), "y".repeat(9));
        assert_eq!(shortened(long), "x".repeat(NOTE_MAX - 1));
        assert_eq!(shortened("short".to_owned()), "short");
    }
}
