//! Building a replay: delay lines, links and stages.

use std::sync::Arc;

use longwire_engine::{Bytes, Link, LinkId, Nanos};
use longwire_io::TxPort;
use longwire_io::delay_line::{DelayLineConfig, delay_line};
use longwire_io::port::AnyTx;

use super::{ReplayConfig, ReplayOutput};
use crate::clock::Clock;
use crate::counters::LinkShared;
use crate::feed::Feed;
use crate::record::{Epoch, Recording};
use crate::run::{ReportSource, memory_for};
use crate::stage::{Decider, Egress, EgressParts, Feeding, FeedingOutput, place_link};
use crate::start_error::StartError;

/// Bytes read ahead for a port that takes frames at its own speed: few enough
/// to stay in a cache.
const READ_AHEAD_TOP_SPEED: u64 = 1 << 20;

/// A replay under construction.
pub(super) struct ReplayBuilder<'a> {
    pub config: &'a ReplayConfig,
    pub epoch: Epoch,
    pub recording: Option<&'a Recording>,
    pub paced: bool,
    pub watched: Vec<ReportSource>,
    pub egress: Vec<Egress<AnyTx>>,
    pub notes: Vec<String>,
}

impl ReplayBuilder<'_> {
    /// Builds the feeding stage of one feed with its outputs.
    pub fn feeding(
        &mut self,
        mut feed: Box<dyn Feed>,
        outputs: impl Iterator<Item = ReplayOutput>,
    ) -> Result<Feeding, StartError> {
        feed.begin(self.epoch);
        let outputs: Result<Vec<_>, _> = outputs.map(|output| self.output(output)).collect();
        let read_ahead = if self.paced {
            self.config.read_ahead.0
        } else {
            self.config.read_ahead.0.min(READ_AHEAD_TOP_SPEED)
        };
        Ok(Feeding::new(
            feed,
            outputs?,
            self.epoch.monotonic,
            read_ahead,
        ))
    }

    fn output(&mut self, output: ReplayOutput) -> Result<FeedingOutput, StartError> {
        let ReplayOutput {
            port,
            link: setup,
            sent,
        } = output;
        let link_id = LinkId(self.watched.len() as u32);
        let record_handle = || {
            self.recording
                .map(|recording| recording.record_handle(link_id))
        };
        let mut link = setup.config;
        link.epoch = self.epoch.monotonic;
        let read_ahead = self.config.read_ahead.0;
        let derived = || Bytes(memory_for(&link).0.saturating_add(read_ahead * 2));
        let (line, reader) = delay_line(&DelayLineConfig {
            budget: self.config.memory.unwrap_or_else(derived),
            huge_pages: true,
        })?;
        let described = link.describe();
        let transparent = link.rate.is_unlimited() && link.delay.mean() == Nanos::ZERO;
        let shared = Arc::new(LinkShared::new());
        let link = Link::new(link, self.config.seed, link_id);
        let (in_order, mtu) = (link.in_order(), link.mtu());
        let decider = Decider::new(link, link_id, Arc::clone(&shared), record_handle());
        let (at_arrival, at_egress) = place_link(decider);
        let parts = EgressParts {
            port: port.tx,
            line: reader,
            clock: Clock::Monotonic,
            in_order,
            link: at_egress,
            record_handle: record_handle(),
            tolerance: if self.paced {
                self.config.tolerance
            } else {
                Nanos::MAX
            },
            grace_until: self.epoch.monotonic.saturating_add(self.config.grace),
        };
        let mut egress = Egress::new(parts, Arc::clone(&shared));
        if let Some(sent) = sent {
            egress.log_to(sent);
        }
        if self.paced {
            self.watch(&mut egress, &setup.name);
        } else {
            egress.ignore_lateness();
        }
        self.egress.push(egress);
        self.notes.extend(port.notes);
        self.watched.push(ReportSource {
            name: setup.name,
            config: described,
            shared: Arc::clone(&shared),
        });
        Ok(FeedingOutput {
            link: at_arrival,
            link_id,
            mtu,
            line,
            shared,
            transparent,
        })
    }

    /// Enables the accounts of the output's departures: by their handover, and
    /// by the port's send stamps.
    fn watch(&mut self, egress: &mut Egress<AnyTx>, name: &str) {
        match egress.port().launch_lead() {
            None => egress.watch_departures(),
            // The handover does not determine when frames leave.
            Some(lead) => self.notes.push(format!(
                "{name}: frames are handed over {lead} early and held until their time: \
                 lateness counts those handed over too late; only send stamps show when they \
                 leave"
            )),
        }
        let every = self.config.stamp_every;
        if every > 0 && egress.watch_sends(every).is_none() {
            self.notes.push(format!(
                "{name}: the port gives no send stamps; lateness is that of the handover"
            ));
        }
    }
}
