//! Warnings about combinations of individually valid values.

use longwire_units::random::Purpose;
use longwire_units::{Bytes, Nanos};

use crate::frame_context::FrameContext;
use crate::link_spec::Setting;
use crate::models::delay::DelayModel;
use crate::models::order::OrderPolicy;
use crate::models::rate::slots::Caps;
use crate::models::{self, Described};
use crate::origin::Origin;
use crate::parts::{Doubt, LinkSpec};
use crate::prelude::*;

/// Frame rate at which the effect of in-order jitter is computed.
const FRAMES_PER_SEC: u64 = 1_000;

/// Number of delays drawn. The first half is warm-up: early frames have too few predecessors to
/// wait for.
const FRAMES_DRAWN: u64 = 20_000;

/// Minimum increase of the mean that triggers a warning, in percent.
const RAISED_LEAST: u64 = 1;

impl LinkSpec {
    /// Returns warnings about combinations of values: parts without effect, in-order jitter that
    /// raises the mean delay, a base delay that is added twice. Draws thousands of delays and takes
    /// a few milliseconds.
    pub fn joint_doubts(&self) -> Vec<Doubt> {
        let doubts = [
            (models::RATE.name, self.base_delay_doubt()),
            (models::RATE.name, self.slots_doubt()),
            (models::DELAY.name, self.order_doubt()),
            (models::REORDERING.name, self.reordering_doubt()),
            (models::QUEUE.name, self.queue_doubt()),
            (models::FRAMING.name, self.framing_doubt()),
        ];
        let doubts = doubts.into_iter().filter_map(|(option, message)| {
            let message = message?;
            Some(Doubt { option, message })
        });
        doubts.collect()
    }

    fn has_rate(&self) -> bool {
        let rate = Setting::first(&self.rate);
        rate.is_some_and(|rate| !rate.prototype().is_unlimited())
    }

    fn queue_doubt(&self) -> Option<String> {
        let queue = Setting::first(&self.queue)?;
        let text = queue.text();
        (!self.has_rate() && text != "unlimited").then(|| {
            format!(
                "{text} has no effect without a rate: no frame is queued, and unlike in netem, \
                 frames in flight do not count; add a rate"
            )
        })
    }

    fn framing_doubt(&self) -> Option<String> {
        let framing = Setting::first(&self.framing)?;
        let text = framing.text();
        (!self.has_rate() && text != "none")
            .then(|| format!("{text} has no effect without a rate; add a rate"))
    }

    fn reordering_doubt(&self) -> Option<String> {
        let reordering = Setting::first(&self.reordering)?;
        let gap = models::REORDERING.arguments("gap", reordering.text())?;
        if self.delay.is_none() || self.mean_delay() == Nanos::ZERO {
            return Some("frames cannot be sent ahead without a delay; add a delay".to_string());
        }
        let given = |key, default: &str| gap.word(key).is_none_or(|word| word == default);
        (given("gap", "1") && given("rate", "100%")).then(|| {
            "all frames are sent ahead, so the delay has no effect; write gap=5 for every fifth \
             frame, or rate=25%"
                .to_string()
        })
    }

    /// Warns about in-order jitter that raises the mean delay.
    fn order_doubt(&self) -> Option<String> {
        let order = Setting::first(&self.order);
        if order.is_some_and(|order| *order.prototype() == OrderPolicy::Reorder) {
            return None;
        }
        let delay = Setting::first(&self.delay)?;
        let model = delay.prototype();
        // Plugins are not bound yet, so their delays are unknown.
        let unknown = models::DELAY.arguments("plugin", delay.text()).is_some();
        if unknown || model.fixed().is_some() {
            return None;
        }
        let (drawn, raised) = means_in_order(model.clone());
        (raised - drawn > drawn / 100 * RAISED_LEAST).then(|| {
            format!(
                "jitter without reordering delays frames until the previous release: at \
                 {FRAMES_PER_SEC} frames/s the mean is {}, not {}, and frames leave in bursts; \
                 order=reorder permits overtaking",
                rounded(raised),
                rounded(drawn)
            )
        })
    }

    /// Warns about slots larger than the derived queue limit.
    fn slots_doubt(&self) -> Option<String> {
        let rate = Setting::first(&self.rate)?;
        let slots = models::RATE.arguments("slots", rate.text())?;
        let slot = Bytes(Caps::read(&slots).ok()?.full_bytes()?);
        let derived = self.queue_limit().bytes.filter(|_| self.queue.is_none());
        derived.filter(|held| *held < slot).map(|held| {
            format!(
                "the derived queue limit of {held} is smaller than a slot of full-size frames; add \
                 queue={slot}"
            )
        })
    }

    /// Warns about a CellReplay base delay that is added twice.
    fn base_delay_doubt(&self) -> Option<String> {
        let (rate, delay) = (Setting::first(&self.rate)?, Setting::first(&self.delay)?);
        let rate = models::RATE.arguments("cellreplay", rate.text())?;
        let delay = models::DELAY.arguments("trace", delay.text())?;
        if rate.word("trains") != delay.word("file") {
            return None;
        }
        let message = match rate.word("base-delay") {
            Some("included") => {
                "the trains already include the base delay, which the delay trace adds again; \
                 remove the delay"
            }
            _ => {
                "the delay trace changes the base delay within a train, but CellReplay keeps the \
                 first packet's; write base-delay=included and remove the delay"
            }
        };
        Some(message.to_string())
    }
}

/// Returns the mean delay in nanoseconds: as drawn, and with in-order releases.
fn means_in_order(mut model: Described<dyn DelayModel>) -> (u64, u64) {
    let origin = Origin {
        seed: 0,
        link: 0,
        epoch: Nanos::ZERO,
        change: 0,
    };
    let mut stream = origin.stream(Purpose::Delay);
    model.start(Nanos::ZERO);
    let (mut latest, mut drawn, mut raised) = (0, 0u128, 0u128);
    for number in 0..FRAMES_DRAWN {
        let at = number * 1_000_000_000 / FRAMES_PER_SEC;
        let frame = FrameContext::alone(Nanos::from_nanos(at), 1_514);
        let delay = model.draw(&frame, &mut stream).as_nanos();
        latest = at.saturating_add(delay).max(latest);
        if number >= FRAMES_DRAWN / 2 {
            drawn += u128::from(delay);
            raised += u128::from(latest - at);
        }
    }
    let mean = |sum: u128| (sum / u128::from(FRAMES_DRAWN / 2)) as u64;
    (mean(drawn), mean(raised))
}

/// Rounds to three significant digits.
fn rounded(nanos: u64) -> Nanos {
    let unit = 10u64.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
    Nanos::from_nanos((nanos + unit / 2) / unit * unit)
}
