//! Properties of the machine that affect the results.

use longwire_runtime::host;

/// Returns remarks on this machine, in sentences.
pub(super) fn remarks() -> Vec<String> {
    let mut remarks = vec![format!("{} cores", host::cores())];
    if let Ok(release) = nix::sys::utsname::uname() {
        remarks.push(format!("Linux {}", release.release().to_string_lossy()));
    }
    let throttle = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    let throttle: Option<i64> = throttle.ok().and_then(|text| text.trim().parse().ok());
    if let Some(micros) = throttle.filter(|micros| *micros >= 0) {
        remarks.push(format!(
            "real-time threads get {micros} us of each second's million \
             (kernel.sched_rt_runtime_us): one that spins is stopped for the rest"
        ));
    }
    remarks
}
