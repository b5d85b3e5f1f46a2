//! Watches that fill caches, and retry delays.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::utils::{Backoff as ResetBackoff, StreamBackoff};
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::metrics::Metrics;
use crate::plan::ResourceKey;

/// Time after which the API server ends a watch, which is then resumed. Bounds the time until a
/// dead connection is detected.
const WATCH_SECONDS: u32 = 30;

/// Read timeout of connections to the API server.
const READ_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);

/// Error of accessing a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no configuration.
    #[error("cannot find a cluster: {0}")]
    Config(#[from] kube::config::InferConfigError),
    /// The configuration is invalid.
    #[error("cannot create a cluster client: {0}")]
    Client(#[from] kube::Error),
}

/// Creates a client for the cluster of this pod, or for the one in `KUBECONFIG`.
///
/// # Errors
/// If the configuration is missing or invalid.
pub async fn connect() -> Result<Client, ClusterError> {
    let mut config = kube::Config::infer().await?;
    config.connect_timeout = Some(Duration::from_secs(5));
    config.read_timeout = Some(READ_TIMEOUT);
    Ok(Client::try_from(config)?)
}

/// A task that is aborted on drop.
#[derive(Debug)]
pub struct Task(JoinHandle<()>);

impl Task {
    /// Starts a task.
    pub fn start(work: impl Future<Output = ()> + Send + 'static) -> Task {
        Task(tokio::spawn(work))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A cache with the task that fills it.
#[derive(Debug)]
pub struct Watch<T> {
    /// Cache that the task fills.
    pub cache: Arc<Cache<T>>,
    _task: Task,
}

/// Returns the configuration for a watch on all objects of a kind.
pub fn all() -> Config {
    Config::default().timeout(WATCH_SECONDS)
}

/// Starts watches that notify of changes and count errors.
#[derive(Clone)]
pub struct Watcher {
    /// Client of the cluster.
    pub client: Client,
    /// Notified at each change.
    pub changed: Arc<Notify>,
    /// Metrics that count errors.
    pub metrics: Metrics,
}

impl Watcher {
    /// Watches objects, and caches the results of `reduce`.
    pub fn start<K, T>(&self, api: Api<K>, config: Config, reduce: fn(K) -> T) -> Watch<T>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
        T: Clone + PartialEq + Send + 'static,
    {
        let cache: Arc<Cache<T>> = Arc::default();
        let (filled, changed) = (Arc::clone(&cache), Arc::clone(&self.changed));
        let errors = self.metrics.watch_errors(&K::kind(&()));
        let task = Task::start(async move {
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
        Watch { cache, _task: task }
    }
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

/// Objects by name: the last complete list with all later changes.
///
/// An incomplete list is not visible: if the watch fails, the objects remain unchanged.
#[derive(Debug)]
pub struct Cache<T>(Mutex<Contents<T>>);

#[derive(Debug)]
struct Contents<T> {
    /// `None` before the first complete list.
    objects: Option<BTreeMap<ResourceKey, T>>,
    /// Incomplete list.
    incoming: BTreeMap<ResourceKey, T>,
}

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache(Mutex::new(Contents {
            objects: None,
            incoming: BTreeMap::new(),
        }))
    }
}

impl<T: Clone + PartialEq> Cache<T> {
    /// Returns all objects ordered by name; `None` before the first complete list.
    pub fn objects(&self) -> Option<Vec<T>> {
        let contents = self.contents();
        Some(contents.objects.as_ref()?.values().cloned().collect())
    }

    /// Applies a watch event. Returns whether visible objects changed.
    pub fn apply(&self, event: Event<(ResourceKey, T)>) -> bool {
        let mut contents = self.contents();
        // Single changes follow a complete list.
        let objects = contents.objects.as_mut();
        match event {
            Event::Apply((key, object)) => objects.is_some_and(|objects| {
                let is_new = objects.get(&key) != Some(&object);
                objects.insert(key, object);
                is_new
            }),
            Event::Delete((key, _)) => objects.is_some_and(|it| it.remove(&key).is_some()),
            Event::Init => {
                contents.incoming.clear();
                false
            }
            Event::InitApply((key, object)) => {
                contents.incoming.insert(key, object);
                false
            }
            Event::InitDone => {
                let objects = Some(std::mem::take(&mut contents.incoming));
                std::mem::replace(&mut contents.objects, objects) != contents.objects
            }
        }
    }

    fn contents(&self) -> MutexGuard<'_, Contents<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Initial delay.
const FIRST: Duration = Duration::from_millis(100);

/// Maximum delay; short, so that links are updated soon after an outage of the API server.
const LAST: Duration = Duration::from_secs(3);

/// Delays that double from 100 ms to 3 s, less a random jitter of up to half.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    /// State of a linear congruential generator, which suffices for jitter.
    random: u32,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            next: FIRST,
            random: std::process::id(),
        }
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let time = self.next;
        self.next = (time * 2).min(LAST);
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        let less = time / 2 * (self.random >> 16) / (1 << 16);
        Some(time - less)
    }
}

impl ResetBackoff for Backoff {
    fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, value: u32) -> (ResourceKey, u32) {
        (ResourceKey::new("shop", name), value)
    }

    #[test]
    fn an_incomplete_list_is_invisible() {
        let cache = Cache::default();
        assert!(!cache.apply(Event::Init));
        assert!(!cache.apply(Event::InitApply(named("a", 1))));
        assert_eq!(cache.objects(), None);
        assert!(!cache.apply(Event::InitApply(named("b", 2))));
        assert!(cache.apply(Event::InitDone));
        assert_eq!(cache.objects(), Some(vec![1, 2]));
        cache.apply(Event::Init);
        cache.apply(Event::InitApply(named("b", 2)));
        assert_eq!(cache.objects(), Some(vec![1, 2]));
        // A restarted watch discards its incomplete list.
        cache.apply(Event::Init);
        cache.apply(Event::InitApply(named("c", 3)));
        assert!(cache.apply(Event::InitDone));
        assert_eq!(cache.objects(), Some(vec![3]));
    }

    #[test]
    fn equal_objects_are_no_change() {
        let cache = Cache::default();
        cache.apply(Event::Init);
        cache.apply(Event::InitDone);
        assert!(cache.apply(Event::Apply(named("a", 1))));
        assert!(!cache.apply(Event::Apply(named("a", 1))));
        assert!(cache.apply(Event::Apply(named("a", 2))));
        assert!(cache.apply(Event::Delete(named("a", 2))));
        assert!(!cache.apply(Event::Delete(named("a", 2))));
    }

    #[test]
    fn delays_grow_to_the_limit() {
        let mut backoff = Backoff::default();
        let times: Vec<Duration> = backoff.by_ref().take(12).collect();
        assert!(times[0] <= FIRST && times[0] >= FIRST / 2);
        assert!(times[11] <= LAST && times[11] >= LAST / 2);
        backoff.reset();
        assert!(backoff.next().expect("no end") <= FIRST);
    }
}
