//! Watches that fill caches.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::utils::StreamBackoff;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::backoff::Backoff;
use crate::cache::Cache;
use crate::metrics::Metrics;
use crate::plan::ResourceKey;

/// Time after which the API server ends a watch, which then resumes. It bounds the time to detect a
/// dead connection.
const WATCH_SECONDS: u32 = 30;

/// Read timeout of connections to the API server.
const READ_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);

/// Error of access to the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no configuration.
    #[error("no cluster: {0}")]
    Config(#[from] kube::config::InferConfigError),
    /// The configuration is invalid.
    #[error("no client of the cluster: {0}")]
    Client(#[from] kube::Error),
}

/// Creates a client of the pod's cluster, or that of `KUBECONFIG`.
///
/// # Errors
/// If the configuration is missing or invalid.
pub async fn connect() -> Result<Client, ClusterError> {
    let mut config = kube::Config::infer().await?;
    config.connect_timeout = Some(Duration::from_secs(5));
    config.read_timeout = Some(READ_TIMEOUT);
    Ok(Client::try_from(config)?)
}

/// A cache with the task that fills it. Dropping it aborts the task.
#[derive(Debug)]
pub struct Watch<T> {
    /// Cache.
    pub cache: Arc<Cache<T>>,
    task: JoinHandle<()>,
}

impl<T> Drop for Watch<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the configuration of a watch of all objects of a kind.
pub fn all() -> Config {
    Config::default().timeout(WATCH_SECONDS)
}

/// Watches objects, caches the results of `reduce`, and notifies of changes.
pub fn start<K, T>(
    api: Api<K>,
    config: Config,
    reduce: fn(K) -> T,
    changed: &Arc<Notify>,
    metrics: &Metrics,
) -> Watch<T>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    T: Clone + PartialEq + Send + 'static,
{
    let cache: Arc<Cache<T>> = Arc::default();
    let (filled, changed) = (Arc::clone(&cache), Arc::clone(changed));
    let errors = metrics.watch_errors(&K::kind(&()));
    let task = tokio::spawn(async move {
        let events = StreamBackoff::new(watcher(api, config), Backoff::default());
        tokio::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if filled.apply(reduced(event, reduce)) {
                        changed.notify_one();
                    }
                }
                Err(error) => {
                    errors.inc();
                    tracing::warn!(kind = %K::kind(&()), %error, "watch failed");
                }
            }
        }
    });
    Watch { cache, task }
}

fn reduced<K: Resource, T>(event: Event<K>, reduce: fn(K) -> T) -> Event<(ResourceKey, T)> {
    let reduce = |object: K| (ResourceKey::of(&object), reduce(object));
    match event {
        Event::Apply(object) => Event::Apply(reduce(object)),
        Event::Delete(object) => Event::Delete(reduce(object)),
        Event::InitApply(object) => Event::InitApply(reduce(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}
