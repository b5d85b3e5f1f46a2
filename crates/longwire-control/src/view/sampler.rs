//! Sampling of a view.

use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};

use super::PERIOD;
use crate::server::ended;
use crate::state::ApiState;

/// Takes samples while clients need them, until the run ends.
pub async fn sample(state: Arc<ApiState>) {
    let view = Arc::clone(&state.view);
    let mut stopped = state.stopped.clone();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for tick in 0u64.. {
        let next = async {
            if view.is_idle() {
                // Without clients, the run is not woken ten times per second.
                view.wanted().await;
                ticks.reset();
            }
            ticks.tick().await;
        };
        tokio::select! {
            () = next => {}
            () = ended(&mut stopped) => return,
        }
        let (view, of) = (Arc::clone(&view), Arc::clone(&state));
        let sampled = state.slowly(move || view.sample(&of.controller, tick));
        if sampled.await.is_none() {
            return;
        }
    }
}
