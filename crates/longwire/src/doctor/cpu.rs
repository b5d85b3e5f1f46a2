//! CPU checks: quota, steal time, idle states and frequency.

use longwire_runtime::host;

use super::Finding;
use super::system::{field, names, number, read};

pub(super) fn check() -> Vec<Finding> {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let mut findings = vec![cores(host::cores())];
    findings.extend(read("/sys/fs/cgroup/cpu.max").and_then(|text| quota(&text)));
    findings.push(virtualised(&cpuinfo));
    findings.extend(read("/proc/stat").and_then(|text| stolen(&text)));
    findings.push(idle_states());
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    findings.push(governor(read(path)));
    findings
}

fn cores(usable: usize) -> Finding {
    match usable {
        0 | 1 => Finding::warn("cores", "1 usable")
            .costs("the emulator and programs under test share a core: lateness of milliseconds")
            .fix("at least 2 cores for this machine or container"),
        2 | 3 => Finding::ok(
            "cores",
            format!("{usable} usable, shared by both directions and the programs under test"),
        ),
        _ => Finding::ok(
            "cores",
            format!("{usable} usable, enough for one per stage"),
        ),
    }
}

/// Checks the container's CPU quota, if any.
fn quota(cpu_max: &str) -> Option<Finding> {
    let (quota, period) = cpu_max.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    let share = quota / period;
    let ms = period / 1e3;
    let finding = Finding::warn("core quota", format!("{share:.2} cores"))
        .costs(format!(
            "threads stop for up to {ms} ms once the quota is used up"
        ))
        .fix("remove --cpus or the CPU limit, or use --wait block");
    Some(finding)
}

fn virtualised(cpuinfo: &str) -> Finding {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    let mut flags = flags.split_ascii_whitespace();
    if !flags.any(|flag| flag == "hypervisor") {
        return Finding::ok("virtual machine", "none detected");
    }
    let vendor = read("/sys/class/dmi/id/sys_vendor").unwrap_or_else(|| "unknown".to_owned());
    Finding::warn("virtual machine", format!("yes ({vendor})"))
        .costs("millisecond pauses, which runs report separately")
        .fix("dedicated hardware, or a host with dedicated cores")
}

/// Checks steal time.
fn stolen(stat: &str) -> Option<Finding> {
    /// Minimum fraction of steal time for a warning.
    const NOTABLE: f64 = 0.01;
    let total = stat.lines().find(|line| line.starts_with("cpu "))?;
    let jiffies = total.split_ascii_whitespace().skip(1);
    let jiffies: Vec<u64> = jiffies.flat_map(str::parse).collect();
    let stolen = *jiffies.get(7)?;
    let all: u64 = jiffies.iter().take(8).sum();
    let share = stolen as f64 / all.max(1) as f64;
    let found = format!("{:.2}% since boot", share * 100.0);
    let finding = Finding::warn_unless(share < NOTABLE, "steal time", found)
        .costs(
            "other machines use these cores (steal time), which causes lateness that Longwire \
             cannot prevent",
        )
        .fix("a larger or dedicated instance");
    Some(finding)
}

/// Checks the deepest enabled idle state and its wake-up latency.
fn idle_states() -> Finding {
    const DIR: &str = "/sys/devices/system/cpu/cpu0/cpuidle";
    /// Wake-up latencies above this affect results.
    const LATENCY_NOTABLE_US: i64 = 20;
    let driver = read("/sys/devices/system/cpu/cpuidle/current_driver");
    let allowed = |state: &String| number(&format!("{DIR}/{state}/disable")) == Some(0);
    let states = names(DIR).into_iter().filter(allowed);
    let latency = |state: &String| number(&format!("{DIR}/{state}/latency")).unwrap_or(0);
    let deepest = states.max_by_key(latency).map(|state| {
        let name = read(&format!("{DIR}/{state}/name")).unwrap_or(state.clone());
        (name, latency(&state))
    });
    match (driver.as_deref(), deepest) {
        (None | Some("none"), None) => Finding::ok("idle states", "not controlled by this system"),
        (Some("haltpoll" | "haltpoll_idle"), _) => Finding::ok(
            "idle states",
            "haltpoll: an idle core spins briefly before it halts",
        ),
        (driver, Some((name, us))) if us > LATENCY_NOTABLE_US => Finding::warn(
            "idle states",
            format!("{}, down to {name}", driver.unwrap_or("unknown driver")),
        )
        .costs(format!("a sleeping core takes up to {us} us to wake"))
        .fix("cpupower idle-set -D 10, or the kernel parameter processor.max_cstate=1"),
        (driver, deepest) => Finding::ok(
            "idle states",
            match deepest {
                Some((name, us)) => format!("down to {name}: {us} us to wake"),
                None => driver.unwrap_or("unknown").to_owned(),
            },
        ),
    }
}

fn governor(governor: Option<String>) -> Finding {
    match governor.as_deref() {
        None => Finding::ok("frequency governor", "not controlled by this system"),
        Some("performance") => Finding::ok("frequency governor", "performance"),
        Some(other) => Finding::warn("frequency governor", other)
            .costs("low clock frequency for the first frames after idle periods")
            .fix("cpupower frequency-set -g performance"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_quota_is_a_share_of_cores() {
        assert_eq!(quota("max 100000"), None);
        let finding = quota("150000 100000");
        assert_eq!(finding.map(|f| f.found), Some("1.50 cores".to_owned()));
    }

    #[test]
    fn stolen_time_is_the_eighth_column() {
        let stat = |stolen: u64| format!("cpu  100 0 100 800 0 0 0 {stolen} 0 0\ncpu0 1 2\n");
        assert_eq!(stolen(&stat(0)).map(|f| f.status), Some(Status::Ok));
        assert_eq!(stolen(&stat(100)).map(|f| f.status), Some(Status::Warn));
        assert_eq!(stolen("nonsense"), None);
    }

    #[test]
    fn one_core_and_slow_governors_are_warned_of() {
        assert_eq!(cores(1).status, Status::Warn);
        assert_eq!(cores(2).status, Status::Ok);
        assert_eq!(governor(Some("powersave".to_owned())).status, Status::Warn);
        assert_eq!(governor(None).status, Status::Ok);
        assert_eq!(virtualised("flags : fpu hypervisor").status, Status::Warn);
        assert_eq!(virtualised("").status, Status::Ok);
    }
}
