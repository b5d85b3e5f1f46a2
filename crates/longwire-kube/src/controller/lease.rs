//! Leader election with a Lease, like client-go's. Uses only local time, so clocks need not agree.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::slice::unless_status;

/// Name of the lease.
const LEASE: &str = "longwire-controller";

/// Time without a renewal after which another candidate may take the lease.
const DURATION: Duration = Duration::from_secs(15);

/// Time without a renewal after which a leader steps down.
pub(super) const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// Interval between attempts.
pub(super) const RETRY: Duration = Duration::from_secs(2);

/// A candidate for leadership.
#[derive(Debug)]
pub(super) struct Candidate {
    leases: Api<Lease>,
    identity: String,
    /// Owner of the lease, once known.
    pub owner: Option<OwnerReference>,
    /// Last observed lease, and the local time at which its holder, renewal time or transition
    /// count was last seen to change.
    seen: Option<(LeaseSpec, Instant)>,
}

impl Candidate {
    pub fn new(client: Client, namespace: &str, identity: &str) -> Candidate {
        Candidate {
            leases: Api::namespaced(client, namespace),
            identity: identity.to_owned(),
            owner: None,
            seen: None,
        }
    }

    /// Takes or renews the lease. Returns whether the candidate holds it.
    ///
    /// # Errors
    /// If the API server fails; losing a race is not an error.
    pub async fn attempt(&mut self) -> Result<bool, kube::Error> {
        let Some(mut lease) = self.leases.get_opt(LEASE).await? else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(LEASE.to_owned()),
                    owner_references: self.owner.clone().map(|owner| vec![owner]),
                    ..ObjectMeta::default()
                },
                spec: Some(self.spec(None)),
            };
            let created = self.leases.create(&PostParams::default(), &lease).await;
            return unless_status(409, created);
        };
        let spec = lease.spec.take().unwrap_or_default();
        self.see(&spec, Instant::now());
        if !self.may_hold(Instant::now()) {
            return Ok(false);
        }
        lease.spec = Some(self.spec(Some(&spec)));
        if let Some(owner) = &self.owner {
            lease.metadata.owner_references = Some(vec![owner.clone()]);
        }
        // Optimistic locking by resource version: only one of several candidates succeeds.
        let replaced = self
            .leases
            .replace(LEASE, &PostParams::default(), &lease)
            .await;
        unless_status(409, replaced)
    }

    /// Releases the lease, so that the next leader does not have to wait.
    pub async fn release(&self) -> Result<(), kube::Error> {
        let Some(mut lease) = self.leases.get_opt(LEASE).await? else {
            return Ok(());
        };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            return Ok(());
        }
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        self.leases
            .replace(LEASE, &PostParams::default(), &lease)
            .await?;
        Ok(())
    }

    fn see(&mut self, spec: &LeaseSpec, now: Instant) {
        let is_same = self.seen.as_ref().is_some_and(|(seen, _)| {
            seen.holder_identity == spec.holder_identity
                && seen.renew_time == spec.renew_time
                && seen.lease_transitions == spec.lease_transitions
        });
        if !is_same {
            self.seen = Some((spec.clone(), now));
        }
    }

    /// Returns whether this candidate may renew or take the lease: it holds the lease, or the lease
    /// is free.
    fn may_hold(&self, now: Instant) -> bool {
        self.seen.as_ref().is_none_or(|(seen, since)| {
            let holder = seen.holder_identity.as_deref().unwrap_or_default();
            holder.is_empty()
                || holder == self.identity
                || now.saturating_duration_since(*since) >= DURATION
        })
    }

    fn spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let is_held =
            before.is_some_and(|lease| lease.holder_identity.as_ref() == Some(&self.identity));
        let acquired = before.and_then(|lease| lease.acquire_time.clone());
        let transitions = before
            .and_then(|lease| lease.lease_transitions)
            .unwrap_or(0);
        LeaseSpec {
            acquire_time: acquired.filter(|_| is_held).or_else(|| Some(now.clone())),
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(DURATION.as_secs() as i32),
            lease_transitions: Some(transitions + i32::from(before.is_some() && !is_held)),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate() -> Candidate {
        let config = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
        let client = Client::try_from(config).expect("a client");
        Candidate::new(client, "longwire-system", "me")
    }

    fn held_by(holder: &str, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    #[tokio::test]
    async fn a_lease_is_taken_when_its_holder_is_silent() {
        let mut me = candidate();
        let begin = Instant::now();
        let second = |second| begin + Duration::from_secs(second);
        me.see(&held_by("other", 1), begin);
        assert!(!me.may_hold(second(14)));
        assert!(me.may_hold(second(15)));
        // The holder has renewed the lease, so the time restarts.
        me.see(&held_by("other", 2), second(14));
        assert!(!me.may_hold(second(28)));
        me.see(&held_by("other", 2), second(28));
        assert!(me.may_hold(second(29)));
    }

    #[tokio::test]
    async fn a_released_lease_is_free() {
        let mut me = candidate();
        me.see(&held_by("", 1), Instant::now());
        assert!(me.may_hold(Instant::now()));
        me.see(&held_by("me", 2), Instant::now());
        assert!(me.may_hold(Instant::now()));
    }

    #[tokio::test]
    async fn transitions_count_changes_of_the_holder() {
        let me = candidate();
        assert_eq!(me.spec(None).lease_transitions, Some(0));
        assert_eq!(me.spec(Some(&held_by("me", 3))).lease_transitions, Some(3));
        assert_eq!(
            me.spec(Some(&held_by("other", 3))).lease_transitions,
            Some(4)
        );
    }
}
