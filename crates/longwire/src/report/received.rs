//! Formats the receivers' reports of a replay.
//!
//! Frames dropped by the emulated link were never sent, so the network did not lose them. The
//! report shows both counts.

use std::io::{self, Write};

use longwire_runtime::LinkReport;
use longwire_traffic::receive::ReceiveReport;

use super::words::{count, count_of};
use crate::cli::Paint;
use crate::receiving::{ReceivedByLink, text};
use crate::table::joined;

/// Returns a line per receiver.
pub(super) fn lines(links: &[LinkReport], received: &ReceivedByLink) -> Vec<String> {
    let received = links
        .iter()
        .filter_map(|link| Some(summary(link, received.get(&link.name)?)));
    received.collect()
}

/// Writes a section per receiver, including counts that are 0.
///
/// # Errors
/// If `out` cannot be written.
pub(super) fn write(
    out: &mut impl Write,
    links: &[LinkReport],
    received: &ReceivedByLink,
    paint: Paint,
) -> io::Result<()> {
    for link in links {
        if let Some(received) = received.get(&link.name) {
            writeln!(out, "{}", paint.bold(summary(link, received)))?;
            text::write(out, received, true, paint)?;
        }
    }
    Ok(())
}

/// Returns the frame counts along the path.
fn summary(link: &LinkReport, received: &ReceiveReport) -> String {
    let emulated = match link.drops.total() {
        0 => String::new(),
        dropped => format!(", {} dropped by the emulated link", count(dropped)),
    };
    let trace = received.trace.as_ref();
    let lost = trace.map_or(0, |trace| trace.lost + trace.behind_last);
    // Losses at the sending port and at the receiver, which the network did not cause.
    let failed = link.artifacts.of("send_failed") + link.artifacts.of("no_carrier");
    let ends = [
        (failed, "lost by the sending port"),
        (received.unseen.total(), "not seen by the receiver"),
    ];
    let ends = ends.iter().filter(|(n, _)| *n > 0);
    let ends = ends.map(|(n, place)| format!("{} {place}", count(*n)));
    let missing = match joined(ends, " and ").as_str() {
        "" => format!("{} lost by the network", count(lost)),
        ends => format!("{} missing, including {ends}", count(lost)),
    };
    format!(
        "{} at {}: {} in{emulated}, {} sent, {missing}",
        link.name,
        received.port,
        count_of(link.traffic.packets_in, "frame"),
        count(link.traffic.packets_out),
    )
}

#[cfg(test)]
mod tests {
    use longwire_runtime::counters::Traffic;
    use longwire_traffic::receive::TraceReport;

    use super::*;

    #[test]
    fn drops_of_the_link_are_not_losses_of_the_network() {
        let link = LinkReport {
            name: "out".to_owned(),
            traffic: Traffic {
                packets_in: 1_000,
                packets_out: 990,
                ..Traffic::default()
            },
            drops: [("loss", 10)].into(),
            artifacts: [("send_failed", 2)].into(),
            ..LinkReport::default()
        };
        let received = ReceiveReport {
            port: "packet:far".to_owned(),
            trace: Some(TraceReport {
                lost: 3,
                behind_last: 1,
                ..TraceReport::default()
            }),
            ..ReceiveReport::default()
        };
        assert_eq!(
            summary(&link, &received),
            "out at packet:far: 1,000 frames in, 10 dropped by the emulated link, 990 sent, 4 \
             missing, including 2 lost by the sending port"
        );
    }
}
