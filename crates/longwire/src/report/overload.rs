//! Describes links that the network could not serve in time.

use longwire_runtime::LinkReport;

use super::words::{count, count_of, micros};

/// Links with frames that are late because of overload.
pub(super) struct Overload<'a> {
    behind: usize,
    used: usize,
    /// Minimum and median fraction of late frames, over the links that delivered frames.
    least: f64,
    middle: f64,
    worst: &'a LinkReport,
}

impl Overload<'_> {
    /// Returns the overloaded links; `None` if the network kept up.
    pub fn of(links: &[LinkReport]) -> Option<Overload<'_>> {
        let late = links.iter().filter(|row| row.handovers.overload > 0);
        let behind = late.count();
        let used = links.iter().filter(|row| row.traffic.packets_out > 0);
        let mut used: Vec<&LinkReport> = used.collect();
        used.sort_by(|a, b| share_late(a).total_cmp(&share_late(b)));
        let (least, worst) = (used.first()?, used.last()?);
        (behind > 0).then(|| Overload {
            behind,
            used: used.len(),
            least: share_late(least),
            middle: share_late(used[used.len() / 2]),
            worst,
        })
    }

    /// Describes the fractions of late frames per link, if more than two links delivered frames.
    pub fn range(&self) -> Option<String> {
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        (self.used > 2).then(|| {
            format!(
                "overload: late frames per link: minimum {}, median {}, maximum {}",
                percent(self.least),
                percent(self.middle),
                percent(share_late(self.worst)),
            )
        })
    }

    /// Describes the overload in a line.
    pub fn line(&self) -> String {
        let (worst, frames) = (self.worst, self.worst.traffic.packets_out);
        format!(
            "overload: {} of {} fell behind; the worst is {} with {} of {} frames late \
             ({:.1}%), by up to {}",
            count(self.behind as u64),
            count_of(self.used as u64, "link"),
            worst.name,
            count(late(worst)),
            count(frames),
            share_late(worst) * 100.0,
            micros(worst.handovers.late_max_ns as f64 / 1e3),
        )
    }
}

/// Returns the fraction of a link's frames that were released late, from 0 to 1.
fn share_late(row: &LinkReport) -> f64 {
    (late(row) as f64 / row.traffic.packets_out.max(1) as f64).min(1.0)
}

/// Returns the number of a link's frames that were released late, for any reason.
fn late(row: &LinkReport) -> u64 {
    row.handovers.late + row.handovers.overload
}
