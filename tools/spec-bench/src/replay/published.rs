//! Published or separately measured figures, for comparison.

use serde::Serialize;

/// Figures of a tool that was not run here.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figures {
    pub tool: &'static str,
    pub workload: &'static str,
    pub stress: &'static str,
    pub gap_p50_us: Option<f64>,
    pub gap_p99_us: Option<f64>,
    pub cpu_percent: f64,
    pub source: &'static str,
}

const TCPIVO: &str = "Feng, Goel, Bezzaz, Feng, Walpole: TCPivo, 2003";
const MEASURED: &str = "measured on two virtual cores of an EPYC, veth, Linux 6.18";

const fn tcpivo(tool: &'static str, workload: &'static str, cpu_percent: f64) -> Figures {
    Figures {
        tool,
        workload,
        stress: "idle",
        gap_p50_us: None,
        gap_p99_us: None,
        cpu_percent,
        source: TCPIVO,
    }
}

const fn tcpreplay(
    tool: &'static str,
    stress: &'static str,
    gap: (f64, f64),
    cpu_percent: f64,
) -> Figures {
    Figures {
        tool,
        workload: "even 70 us",
        stress,
        gap_p50_us: Some(gap.0),
        gap_p99_us: Some(gap.1),
        cpu_percent,
        source: MEASURED,
    }
}

/// All published figures.
pub(super) const FIGURES: [Figures; 12] = [
    tcpivo("TCPivo, polling", "even 70 us", 78.0),
    tcpivo("TCPivo, usleep", "even 70 us", 40.0),
    tcpivo("TCPivo, firm timers", "even 70 us", 19.0),
    tcpivo("TCPivo, polling", "even 2,500 us", 99.0),
    tcpivo("TCPivo, usleep", "even 2,500 us", 4.0),
    tcpivo("TCPivo, firm timers", "even 2,500 us", 1.0),
    tcpreplay("tcpreplay 4.4.3", "idle", (72.1, 82.0), 99.6),
    tcpreplay("tcpreplay 4.4.3 nano", "idle", (147.0, 189.0), 16.0),
    tcpreplay("tcpreplay 4.5.5", "idle", (70.0, 70.9), 99.5),
    tcpreplay("tcpreplay 4.5.5 nano", "idle", (69.9, 150.0), 17.0),
    tcpreplay("tcpreplay 4.5.5", "disk", (2.4, 3_845.0), 5.0),
    tcpreplay("tcpreplay 4.5.5, SCHED_FIFO", "disk", (69.98, 70.8), 94.0),
];
