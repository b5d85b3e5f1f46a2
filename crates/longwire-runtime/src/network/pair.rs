//! A link between two ports that never changes. It decides at arrival unless its queue is managed.

use std::sync::Arc;

use longwire_engine::{Bytes, Link, LinkConfig, LinkId, Nanos, PathId};
use longwire_io::delay_line::{DelayLineConfig, delay_line};
use longwire_io::port::Port;
use longwire_io::{RxPort, TxPort};
use longwire_packet::bridge::{PortIndex, Reserved, Switching};

use super::assembly::{Assembly, Foundation, ReportSource, ReportSources};
use crate::clock::Clock;
use crate::config::LinkSetup;
use crate::counters::LinkShared;
use crate::deciding::{EventRecorder, NetworkParts, Target};
use crate::placement::{self, Layout};
use crate::port_loss::OnPortLoss;
use crate::record::RecordHandle;
use crate::replay::OfferLogger;
use crate::stage::{
    AddressWatch, AdmissionParts, Bells, CutForm, Egress, EgressParts, IcmpSender, Ingress,
    LaneParts, icmp_line, shares_memory,
};
use crate::start_error::StartError;
use crate::thread::Stages;

/// A link between two ports.
pub(super) struct PairPlan {
    /// Names in reports, and ports.
    pub ports: [(String, Port); 2],
    /// The link from the first port, and the reverse link, if any.
    pub links: Vec<LinkSetup>,
    /// Whether several shards were requested. A pair has none.
    pub unsharded: bool,
}

/// Suffix of the note on thread placement if several shards were requested.
const UNSHARDED: &str = "; --shards has no effect on a link that cannot change";

impl PairPlan {
    /// Builds the stages of both directions and distributes them over threads.
    pub fn assemble(self, foundation: &Foundation<'_>) -> Result<Assembly, StartError> {
        let [(name_a, a), (name_b, b)] = self.ports;
        let config = foundation.config;
        let mut notes = [a.notes, b.notes].concat();
        let addresses = AddressWatch::new(vec![a.name, b.name]);
        let both = self.links.len() == 2;
        let mut sources = ReportSources {
            pair: Some([name_a, name_b]),
            ..ReportSources::default()
        };
        let mut stages = Vec::new();
        let bells = Bells::default();
        let icmp = [0, 1].map(|from| {
            let is_router = self
                .links
                .get(from)
                .is_some_and(|link| link.config.router.is_some());
            // Without a reverse link, no stage sends to the port of arrival.
            (both && is_router).then(|| icmp_line(&bells)).unzip()
        });
        let [(from_a, to_a), (from_b, to_b)] = icmp;
        let (mut icmp_from, mut icmp_to) = ([from_a, from_b], [to_b, to_a]);
        let ends = [(a.rx, b.tx), (b.rx, a.tx)];
        for (from, ((rx, tx), mut link)) in ends.into_iter().zip(self.links).enumerate() {
            link.config.epoch = foundation.epoch.monotonic;
            let link_id = LinkId(from as u32);
            let recorded = foundation.recorded;
            // Departures are recorded under the number of the output port.
            let departures = recorded.departures(LinkId(1 - link_id.0));
            let recorded = (recorded.recorder_of(link_id), departures);
            let direction = DirectionConfig {
                seed: config.seed,
                link_id,
                clock: Clock::Monotonic,
                budget: config.memory.unwrap_or_else(|| memory_for(&link.config)),
                tolerance: config.tolerance,
                grace_until: foundation.grace_until(),
                shared: Arc::default(),
                icmp: icmp_from[from].take(),
                log: None,
            };
            let lend = recorded.0.is_none();
            let direction = Direction::new(tx, link, direction, recorded)?;
            let (mut ingress, mut egress, source) = direction.of_port(rx, Clock::Monotonic, lend);
            egress.icmp = icmp_to[from].take().map(Box::new);
            // Without a reverse link, no answers can arrive.
            if both {
                ingress.admission.addresses = Some(addresses.port(from));
                egress.account.addresses = Some(addresses.port(1 - from));
            }
            sources.links.push(source);
            stages.push(Stages::new(vec![ingress], egress));
        }
        let layout = Layout::choose(config.placement, config.wait);
        notes.push(layout.describe() + if self.unsharded { UNSHARDED } else { "" });
        let workers = placement::workers(stages, layout, config.wait, foundation.control)?;
        let all = workers.first().map(|worker| worker.all.clone());
        // A network starts only once.
        let _ = bells.set(all.unwrap_or_default());
        let threads = workers.into_iter().enumerate();
        Ok(Assembly {
            threads: threads
                .map(|(index, worker)| worker.plan(index, layout.core_of(index), config))
                .collect(),
            notes,
            sources,
            addresses,
            ..Assembly::default()
        })
    }
}

/// Returns whether a network can run as a pair, regardless of its shards: it never changes, all
/// frames of its first port cross link 0, and those of the second port cross link 1 or are dropped.
pub(super) fn is_pair(parts: &NetworkParts) -> bool {
    let (switch, links) = (&parts.switch, parts.links.len());
    let pairs = Switching::Pairs(vec![(PortIndex(0), PortIndex(1))]);
    let is_fixed =
        parts.orders.is_empty() && parts.on_port_loss == OnPortLoss::End && parts.remote.is_none();
    let crosses = |port: u16| match parts.classifier.target_of_port(PortIndex(port)) {
        Some(Target::Path(PathId(path))) => {
            let path = parts.paths.get(path as usize);
            path.is_some_and(|path| *path == [LinkId(port.into())])
        }
        // Permitted only if no link starts at the port.
        Some(Target::Drop) => usize::from(port) == links,
        _ => false,
    };
    let is_joined = (switch.ports, switch.reserved) == (2, Reserved::Pass);
    is_fixed && is_joined && switch.switching == pairs && crosses(0) && crosses(1) && links < 3
}

/// A direction's egress stage, the parts of its ingress stage, and the source of its report.
pub(crate) struct Direction<T> {
    pub admission: AdmissionParts,
    /// Minimum time from arrival to release.
    least: Nanos,
    pub egress: Egress<T>,
    pub source: ReportSource,
}

/// A direction's properties other than its link and ports.
pub(crate) struct DirectionConfig {
    pub seed: u64,
    pub link_id: LinkId,
    pub clock: Clock,
    /// Memory budget for frames.
    pub budget: Bytes,
    pub tolerance: Nanos,
    pub grace_until: Nanos,
    pub shared: Arc<LinkShared>,
    /// Sends ICMP errors back to the port of arrival.
    pub icmp: Option<IcmpSender>,
    /// Logs all decisions, for a replay's clients.
    pub log: Option<OfferLogger>,
}

impl<T: TxPort> Direction<T> {
    /// Builds a link's stages to `tx`.
    pub fn new(
        tx: T,
        setup: LinkSetup,
        config: DirectionConfig,
        (arrivals, departures): (Option<EventRecorder>, Option<RecordHandle>),
    ) -> Result<Direction<T>, StartError> {
        let (line, reader) = delay_line(&DelayLineConfig {
            budget: config.budget,
            huge_pages: true,
        })?;
        let shared = config.shared;
        let described = setup.config.describe();
        let link = Link::new(setup.config, config.seed, config.link_id);
        let (in_order, mtu, least) = (link.in_order(), link.mtu(), link.poll_slack());
        let mut lane = LaneParts::new(link, config.link_id, Arc::clone(&shared), arrivals);
        lane.accounts.icmp = config.icmp.map(Box::new);
        lane.accounts.log = config.log.map(Box::new);
        let (at_ingress, at_egress) = lane.place();
        let form = if tx.takes_offload() {
            CutForm::Trains
        } else {
            CutForm::Finished
        };
        let egress = EgressParts {
            port: tx,
            line: reader,
            clock: config.clock,
            in_order,
            link: at_egress,
            record_handle: departures,
            tolerance: config.tolerance,
            grace_until: config.grace_until,
        };
        Ok(Direction {
            admission: AdmissionParts {
                link: at_ingress,
                mtu,
                line,
                form,
                lend_from: None,
                shared: Arc::clone(&shared),
            },
            least,
            egress: Egress::new(egress, Arc::clone(&shared)),
            source: ReportSource {
                name: setup.name,
                config: described,
                shared,
            },
        })
    }

    /// Returns both stages, with `rx` as the input port. With `lend`, long frames stay in its
    /// memory if the output port shares it.
    pub fn of_port<R: RxPort>(
        self,
        rx: R,
        clock: Clock,
        lend: bool,
    ) -> (Ingress<R>, Egress<T>, ReportSource) {
        let mut admission = self.admission;
        let lends = lend && shares_memory(&rx, self.egress.port()) && admission.link.is_some();
        admission.lend_from = lends.then_some(LEND_FROM);
        let ingress = Ingress::new(rx, clock, admission).release_after(self.least);
        (ingress, self.egress, self.source)
    }
}

/// Minimum length of frames that are cheaper to lend than to copy.
pub const LEND_FROM: usize = 256;

/// Bounds of the default memory for a direction's frames.
const MEMORY_MIN: Bytes = Bytes(256 << 20);
const MEMORY_MAX: Bytes = Bytes(4 << 30);

/// Returns the default budget: four times the capacity of the link's queue and delay line, from
/// 256 MiB to 4 GiB. The factor leaves room for the descriptors of small frames. Memory is
/// allocated only as it is used.
pub(crate) fn memory_for(config: &LinkConfig) -> Bytes {
    memory_of(memory_held(config), MEMORY_MAX)
}

/// Returns the budget for `held` bytes of frames, at most `max`.
pub(crate) fn memory_of(held: u64, max: Bytes) -> Bytes {
    Bytes(held.saturating_mul(4).clamp(MEMORY_MIN.0, max.0))
}

/// Returns the capacity of a link's queue and delay line in bytes.
pub(crate) fn memory_held(config: &LinkConfig) -> u64 {
    let queue = config.queue_limit().bytes.map_or(0, |limit| limit.0);
    let line = match config.rate.bit_rate() {
        Some(rate) => rate.bytes_in(config.delay.mean().saturating_mul(2)).0,
        // For an unlimited rate, assume 10 Gbit/s, which is more than a live port carries.
        None => config.delay.mean().as_nanos().saturating_mul(5) / 4,
    };
    queue.saturating_add(line)
}
