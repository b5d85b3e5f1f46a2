//! The closing sentence of a network's report: whether the network met its
//! configuration, and which links fell behind.

use longwire_engine::DropReason;
use longwire_fabric::{LinkRow, NetworkReport, host_artifacts};
use longwire_hosts::{HostsReport, PeerReport};
use longwire_runtime::Artifact;
use longwire_runtime::fabric::PortReport;

use crate::report::artifacts;
use crate::report::undelivered::UndeliveredFrames;
use crate::report::verdict::{IN_TIME, SHARE_SMALL, Verdict, causes, kinds, lateness, own_share};
use crate::report::words::{count, count_of, micros, percent};

/// Returns the verdict on a network.
pub(super) fn of(report: &NetworkReport) -> Verdict {
    let ports = &report.run.ports;
    let arrived: u64 = ports.iter().map(|port| port.traffic.packets_in).sum();
    let peers = || report.hosts.iter().flat_map(|hosts| &hosts.peers);
    let at_hosts = peers().filter_map(artifacts_at);
    let unrecorded = report.run.counts.unrecorded;
    let recording = (unrecorded > 0).then(|| format!("recording {} unrecorded", count(unrecorded)));
    let artifacts = ports.iter().filter_map(artifacts_of).chain(at_hosts);
    let artifacts = artifacts.chain(recording);
    let artifacts = artifacts.collect::<Vec<_>>().join("; ");
    let outages: Vec<String> = peers().filter_map(outages_of).collect();
    let judged = report.judged();
    let share = judged.links.iter().map(own_share).fold(0.0, f64::max);
    let any = |kind: &str| {
        let mut at_hosts = peers().flat_map(host_artifacts);
        let is_at_host = at_hosts.any(|(name, count)| name == kind && count > 0);
        let is_unrecorded = kind == Artifact::Unrecorded.name() && unrecorded > 0;
        is_at_host || is_unrecorded || ports.iter().any(|port| port.artifacts.of(kind) > 0)
    };
    let mut hints = causes(&report.run, any);
    hints.extend(report.hosts.as_ref().and_then(HostsReport::overflow_hint));
    let (faithful, line) = if let Some(error) = &report.run.error {
        (false, format!("the run ended early: {error}"))
    } else if let Some(lost) = lost_ports(report) {
        (false, format!("a port was lost: {lost}"))
    } else if !outages.is_empty() {
        let also = if artifacts.is_empty() { "" } else { "; " };
        let outages = outages.join(", ");
        let line =
            format!("the network fell short of what was asked for: {outages}{also}{artifacts}");
        (false, line)
    } else if let Some(overload) = Overload::of(&report.links) {
        let line = format!(
            "the network fell behind what was asked for: {}{}",
            overload.links(),
            lost_of(ports),
        );
        (false, line)
    } else if !artifacts.is_empty() && share < SHARE_SMALL && report.run.stops.count == 0 {
        let line = format!("the network was what was asked for, apart from {artifacts}");
        (true, line)
    } else if !artifacts.is_empty() {
        let line = format!("the network fell short of what was asked for: {artifacts}");
        (false, line)
    } else if arrived == 0 {
        let line = "no frame arrived: there is no verdict on the network";
        (true, line.to_owned())
    } else if let Some(undelivered) = UndeliveredFrames::of_network(report) {
        hints.extend(undelivered.hints());
        undelivered_line(&undelivered)
    } else {
        (true, praise(report))
    };
    Verdict {
        faithful,
        line,
        hints,
    }
}

/// Returns the frames that were lost between this host and another one, if any were.
fn artifacts_at(peer: &PeerReport) -> Option<String> {
    let lost = peer.frames_lost + peer.frames_unconfirmed;
    let lost = (lost > 0).then(|| format!("{} lost", count(lost)));
    let dropped = peer.frames_dropped;
    let dropped = (dropped > 0).then(|| format!("{} without memory", count(dropped)));
    let kinds: Vec<String> = lost.into_iter().chain(dropped).collect();
    (!kinds.is_empty()).then(|| format!("host {} {}", peer.name, kinds.join(", ")))
}

/// Returns how often a host did not answer, if it did not.
fn outages_of(peer: &PeerReport) -> Option<String> {
    let times = match peer.outages {
        0 => return None,
        1 => "once".to_owned(),
        times => format!("{} times", count(times)),
    };
    let unsent = match peer.frames_unsent {
        0 => String::new(),
        unsent => format!(", {} frames for it not sent", count(unsent)),
    };
    Some(format!("host {} did not answer {times}{unsent}", peer.name))
}

/// Returns the range of late frames among links, if the network was overloaded and has more
/// links than the verdict describes.
pub(super) fn overload_line(report: &NetworkReport) -> Option<String> {
    let overload = Overload::of(&report.links).filter(|overload| overload.used > 2)?;
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    Some(format!(
        "overload: {} of a link's frames late at the least, {} at the median, {} at the most",
        percent(overload.least),
        percent(overload.middle),
        percent(share_late(overload.worst)),
    ))
}

/// Links that an overload made late.
struct Overload<'a> {
    behind: usize,
    used: usize,
    /// The smallest and the largest share of late frames, among links with
    /// frames.
    least: f64,
    middle: f64,
    worst: &'a LinkRow,
}

impl Overload<'_> {
    /// Returns the overload; `None` if the network kept up.
    fn of(links: &[LinkRow]) -> Option<Overload<'_>> {
        let behind = links
            .iter()
            .filter(|row| row.totals.handovers.overload > 0)
            .count();
        let used = links
            .iter()
            .filter(|row| row.totals.traffic.packets_out > 0);
        let mut used: Vec<&LinkRow> = used.collect();
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

    fn links(&self) -> String {
        let (worst, frames) = (self.worst, self.worst.totals.traffic.packets_out);
        format!(
            "{} of {} could not be served in time, the worst {} with {} of its {} frames late \
             ({:.1}%), by up to {}",
            count(self.behind as u64),
            count_of(self.used as u64, "link"),
            worst.name,
            count(worst.late()),
            count(frames),
            share_late(worst) * 100.0,
            micros(worst.totals.handovers.late_max_ns as f64 / 1e3),
        )
    }
}

/// Returns the share of its frames that a link handed over late, from 0 to 1.
fn share_late(row: &LinkRow) -> f64 {
    let frames = row.totals.traffic.packets_out.max(1);
    (row.late() as f64 / frames as f64).min(1.0)
}

/// Returns the ports that went away, if any did, and the frames lost by it.
fn lost_ports(report: &NetworkReport) -> Option<String> {
    let ports = report.run.ports.iter().filter_map(|port| {
        let lost = port.lost.as_ref()?;
        Some(format!(
            "port {} went away after {:.1} s ({})",
            port.name, lost.after_s, lost.error
        ))
    });
    let ports: Vec<String> = ports.collect();
    let links = report.links.iter();
    let drops = links.map(|row| row.totals.drops[DropReason::PortLost]);
    let frames = drops.sum::<u64>() + report.run.counts.port_lost;
    (!ports.is_empty()).then(|| {
        format!(
            "{}; {} frames for it were lost",
            ports.join(", "),
            count(frames)
        )
    })
}

/// Returns the artifacts of ports that are no lateness, which the links' frames have already,
/// as the end of a sentence.
fn lost_of(ports: &[PortReport]) -> String {
    let others = ports.iter().filter_map(|port| {
        let mut others = port.artifacts.clone();
        others.retain(|kind, _| !artifacts::is_late(kind));
        kinds(&others).map(|kinds| format!("{} {kinds}", port.name))
    });
    let others: Vec<String> = others.collect();
    if others.is_empty() {
        String::new()
    } else {
        format!("; {}", others.join("; "))
    }
}

/// Returns the artifacts of a port, if it has any: `left 12 late, 3 memory`, or with their
/// share if all of these frames left: `left 12 late (0.15% of 8,000 frames sent)`.
fn artifacts_of(port: &PortReport) -> Option<String> {
    let kinds = kinds(&port.artifacts)?;
    let mut happened = port.artifacts.nonzero();
    let sent = port.traffic.packets_out;
    let share = if sent > 0 && happened.all(|(kind, _)| artifacts::is_late(kind)) {
        // A frame that came late from another host may have been sent late here as well.
        let share = (port.artifacts.total() as f64 / sent as f64).min(1.0);
        format!(" ({} of {} frames sent)", percent(share), count(sent))
    } else {
        String::new()
    };
    Some(format!("{} {kinds}{share}", port.name))
}

/// Returns whether a network that delivered no frame met its configuration, with the reasons.
fn undelivered_line(undelivered: &UndeliveredFrames) -> (bool, String) {
    let is_configured = undelivered.asked_for();
    let verdict = if is_configured {
        "the network was what was asked for"
    } else {
        "the network is not usable"
    };
    (is_configured, format!("{verdict}: {}", undelivered.line()))
}

fn praise(report: &NetworkReport) -> String {
    let ports = &report.run.ports;
    let out: u64 = ports.iter().map(|port| port.traffic.packets_out).sum();
    let lateness = lateness(ports.iter().map(|port| port.lateness_us));
    let lateness = lateness.unwrap_or_else(|| IN_TIME.to_owned());
    format!(
        "the network was what was asked for: {} delivered, {lateness}, no artifacts",
        count_of(out, "frame")
    )
}

#[cfg(test)]
mod tests {
    use longwire_fabric::Changes;
    use longwire_runtime::RunReport;
    use longwire_runtime::fabric::LinkTotals;
    use longwire_runtime::ledger::{Handovers, Traffic};

    use super::*;

    fn link(name: &str, packets_out: u64, overload: u64) -> LinkRow {
        LinkRow {
            name: name.to_owned(),
            removed: false,
            config: serde_json::Map::new(),
            totals: LinkTotals {
                traffic: Traffic {
                    packets_in: packets_out,
                    packets_out,
                    ..Traffic::default()
                },
                handovers: Handovers {
                    overload,
                    late_max_ns: 3_000_000_000,
                    ..Handovers::default()
                },
                ..LinkTotals::default()
            },
            dropped: Default::default(),
        }
    }

    fn report(overload: &[u64]) -> NetworkReport {
        let links = overload.iter().enumerate();
        let links = links.map(|(nth, late)| link(&format!("l{nth}"), 100, *late));
        let port = PortReport {
            name: "right".to_owned(),
            traffic: Traffic {
                packets_in: 1,
                packets_out: 300,
                ..Traffic::default()
            },
            artifacts: [("overload", overload.iter().sum()), ("memory", 0)].into(),
            ..PortReport::default()
        };
        NetworkReport {
            run: RunReport {
                ports: vec![port],
                ..RunReport::default()
            },
            links: links.collect(),
            changes: Changes::default(),
            hosts: None,
        }
    }

    #[test]
    fn a_host_that_did_not_answer_and_full_lines_are_named() {
        let mut report = report(&[0]);
        let peer = PeerReport {
            name: "east".to_owned(),
            frames_received: 100_000,
            frames_dropped: 5,
            ..PeerReport::default()
        };
        report.hosts = Some(HostsReport {
            peers: vec![peer],
            ..HostsReport::default()
        });
        let verdict = of(&report);
        assert!(
            verdict
                .line
                .contains("apart from host east 5 without memory"),
            "{}",
            verdict.line
        );
        let judged = report.judged();
        let row = judged.links.iter().find(|row| row.name == "host east");
        let row = row.expect("a row of the host");
        assert_eq!(row.artifacts.of("memory"), 5);
        let hosts = report.hosts.as_mut().expect("hosts");
        hosts.peers[0].outages = 2;
        hosts.peers[0].frames_unsent = 3;
        hosts.peers[0].frames_unconfirmed = 7;
        let verdict = of(&report);
        assert!(!verdict.faithful, "{}", verdict.line);
        assert!(
            verdict.line.contains(
                "east did not answer 2 times, 3 frames for it not sent; host east 7 lost, 5 without"
            ),
            "{}",
            verdict.line
        );
    }

    #[test]
    fn frames_that_the_underlay_lost_are_named() {
        let mut report = report(&[0]);
        let before = of(&report);
        assert!(!before.line.contains("host east"), "{}", before.line);
        let peer = PeerReport {
            name: "east".to_owned(),
            frames_received: 70,
            frames_lost: 30,
            ..PeerReport::default()
        };
        report.hosts = Some(HostsReport {
            peers: vec![peer],
            ..HostsReport::default()
        });
        let verdict = of(&report);
        assert!(!verdict.faithful, "{}", verdict.line);
        assert!(
            verdict.line.contains("host east 30 lost"),
            "{}",
            verdict.line
        );
        let judged = report.judged();
        let row = judged.links.iter().find(|row| row.name == "host east");
        let row = row.expect("a row of the host");
        assert_eq!(row.artifacts.of(Artifact::UnderlayLost.name()), 30);
        let has_hint = |verdict: &Verdict| {
            let mut hints = verdict.hints.iter();
            hints.any(|hint| hint.contains("dropped 2 buffers at the socket"))
        };
        assert!(!has_hint(&verdict));
        report.hosts.as_mut().expect("hosts").receive_overflows = 2;
        assert!(has_hint(&of(&report)));
    }

    #[test]
    fn an_overload_is_named_once_with_its_links() {
        let mut report = report(&[0, 96, 12]);
        report.run.ports[0].artifacts = [("overload", 108), ("late", 4), ("memory", 3)].into();
        let verdict = of(&report);
        assert!(!verdict.faithful);
        assert_eq!(
            verdict.line,
            "the network fell behind what was asked for: 2 of 3 links could not be served in \
             time, the worst l1 with 96 of its 100 frames late (96.0%), by up to 3.00 s; right 3 \
             memory"
        );
        let has = |text: &str| verdict.hints.iter().any(|hint| hint.contains(text));
        assert!(has("more than this machine can"));
        assert_eq!(
            overload_line(&report).as_deref(),
            Some(
                "overload: 0.0% of a link's frames late at the least, 12.0% at the median, 96.0% \
                 at the most"
            )
        );
    }

    #[test]
    fn late_frames_have_their_share_of_the_frames_sent() {
        let mut report = report(&[0, 0]);
        report.run.ports[0].artifacts = [("late", 3)].into();
        let line = of(&report).line;
        assert!(
            line.ends_with(": right 3 late (1.00% of 300 frames sent)"),
            "{line}"
        );
        report.run.ports[0].artifacts = [("late", 3), ("memory", 1)].into();
        let line = of(&report).line;
        assert!(line.ends_with("right 3 late, 1 memory"), "{line}");
        // Most came late from another host, and were sent late here as well.
        report.run.ports[0].artifacts = [("late", 300), ("underlay", 200)].into();
        let line = of(&report).line;
        assert!(line.ends_with("(100% of 300 frames sent)"), "{line}");
    }

    #[test]
    fn events_that_were_not_recorded_are_named() {
        let mut report = report(&[0, 0]);
        report.run.ports[0].traffic.packets_in = 300;
        report.run.counts.unrecorded = 7;
        let verdict = of(&report);
        assert!(!verdict.faithful, "{}", verdict.line);
        assert!(
            verdict.line.ends_with("recording 7 unrecorded"),
            "{}",
            verdict.line
        );
        assert!(
            verdict.hints[0].contains("a faster disk"),
            "{:?}",
            verdict.hints
        );
        report.run.ports[0].traffic.packets_in = 100_000;
        let verdict = of(&report);
        assert!(verdict.faithful, "{}", verdict.line);
        let text = "apart from recording 7 unrecorded";
        assert!(verdict.line.contains(text), "{}", verdict.line);
    }

    #[test]
    fn pauses_of_the_machine_are_named_as_of_a_pair() {
        let mut report = report(&[0, 0]);
        report.run.pauses.count = 2;
        assert_eq!(of(&report).hints, Vec::<String>::new(), "nothing was late");
        report.run.ports[0].artifacts = [("late_paused", 3)].into();
        let hints = of(&report).hints;
        assert!(hints[0].starts_with("pauses: the machine itself stood still 2 times"));
    }

    #[test]
    fn a_network_that_delivered_nothing_says_where_its_frames_are() {
        let mut report = report(&[0]);
        report.run.ports[0].traffic.packets_out = 0;
        report.run.ports[0].traffic.packets_in = 13;
        report.run.in_flight = 13;
        let verdict = of(&report);
        assert!(verdict.faithful);
        let text = "the network was what was asked for: none of 13 frames delivered: 13 still on";
        assert!(verdict.line.starts_with(text), "{}", verdict.line);

        report.run.in_flight = 0;
        report.links[0].totals.drops[DropReason::Loss] = 13;
        let verdict = of(&report);
        assert!(verdict.faithful, "{}", verdict.line);
        assert!(verdict.line.ends_with("13 dropped by loss"));

        report.links[0].totals.drops[DropReason::Mtu] = 1;
        let verdict = of(&report);
        assert!(!verdict.faithful);
        let text = "the network is not usable: none of 13 frames delivered: 13 dropped by loss, 1";
        assert!(verdict.line.starts_with(text), "{}", verdict.line);
        assert!(verdict.hints[0].contains("--mtu"));
    }

    #[test]
    fn a_network_that_kept_up_is_praised() {
        let verdict = of(&report(&[0, 0]));
        assert!(verdict.faithful && verdict.hints.is_empty());
        assert!(
            verdict
                .line
                .starts_with("the network was what was asked for: 300 frames")
        );
        assert_eq!(overload_line(&report(&[0, 0])), None);
    }
}
