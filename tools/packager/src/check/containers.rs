//! Checks of the image with containerd and runc, in directories of the test.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::containers_spec::Bundle;
use super::engines;
use super::{Context, Outcome, ensure, is_root, missing};
use crate::image::reference;
use crate::paths::VERSION;
use crate::run::{At, Finished, Result, finish, run, text, write};

/// Timeout for containerd's first answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The command of most containers.
pub const PING: [&str; 8] = [
    "longwire", "exec", "--delay", "20ms", "--", "ping", "-c1", "far",
];

/// The command of containers with an ordinary user: /proc/sys is read-only there, so
/// only root may use `ping`.
pub const CONNECT: [&str; 12] = [
    "longwire",
    "exec",
    "--delay",
    "20ms",
    "--require",
    "packets_in>0",
    "--peer",
    "nc -l -p 5000 -e echo answered",
    "--",
    "sh",
    "-c",
    "sleep 0.5; nc far 5000",
];

/// Remedies in the messages for root and for other users.
const AS_ROOT: &str =
    "This root has no CAP_SYS_ADMIN: start the container with --cap-add SYS_ADMIN";
const AS_USER: &str = "Run Longwire as root. A container needs --cap-add SYS_ADMIN";

/// The ordinary user.
pub const USER: u32 = 1000;

/// Rights of a container, and whether `exec` works with them.
struct Rights {
    what: &'static str,
    flags: &'static [&'static str],
    works: bool,
}

/// `--seccomp` is the engines' default profile. The last flags are those named by the
/// error message.
const RIGHTS: [Rights; 4] = [
    Rights {
        what: "root",
        flags: &[],
        works: true,
    },
    Rights {
        what: "root, privileged",
        flags: &["--privileged"],
        works: true,
    },
    Rights {
        what: "root, profile of engines",
        flags: &["--seccomp"],
        works: false,
    },
    Rights {
        what: "root, profile of engines, SYS_ADMIN",
        flags: &["--seccomp", "--cap-add", "CAP_SYS_ADMIN"],
        works: true,
    },
];

/// Runs the image with Debian's engines.
pub fn image(context: &Context) -> Result<Outcome> {
    if !is_root() {
        return Ok(Outcome::Skipped("needs root, for containerd".to_owned()));
    }
    if let Some(skipped) = missing(&["containerd", "ctr", "runc", "setpriv"]) {
        return Ok(skipped);
    }
    let image = context.package("-oci.tar")?;
    let engine = Containerd::start(context)?;
    run(engine.ctr(&["images", "import"]).arg(&image))?;
    let reference = reference("longwire");
    run(&mut engine.ctr(&["images", "check", &format!("name=={reference}")]))?;
    let version = finish(&mut engine.container(&[], &reference, &["longwire", "--version"]))?;
    ensure(version.text.contains(VERSION), || version.text.clone())?;
    for rights in &RIGHTS {
        let finished = finish(&mut engine.container(rights.flags, &reference, &PING))?;
        judge(rights.what, rights.works, &finished, AS_ROOT)?;
    }
    let bundle = Bundle::unpack(context, &image)?;
    for (flags, works) in [(&["--seccomp"][..], false), (RIGHTS[3].flags, true)] {
        let spec = engine.spec(flags, &reference)?;
        let finished = bundle.run_as_user(&spec)?;
        judge(
            &format!("uid {USER}, {}", flags.join(" ")),
            works,
            &finished,
            AS_USER,
        )?;
    }
    // The container's root is an ordinary user: podman grants it SETFCAP, runc does
    // not.
    for (capabilities, works) in [(&[][..], false), (&["CAP_SETFCAP"][..], true)] {
        let finished = bundle.run_rootless(capabilities)?;
        let what = format!("rootless runc {}", capabilities.join(" "));
        judge(&what, works, &finished, "--cap-add SETFCAP")?;
    }
    drop(engine);
    engines::podman(context, &image)?;
    engines::docker(context, &image)?;
    Ok(Outcome::Passed)
}

/// Checks a run of [`PING`] or [`CONNECT`]: a reply through the link, or an error with
/// this remedy.
pub fn judge(what: &str, works: bool, finished: &Finished, remedy: &str) -> Result<()> {
    let text = &finished.text;
    let fault = || format!("{what}: exit code {:?}: {text}", finished.code);
    if works {
        let answered = round_trip_ms(text).map_or_else(
            || text.lines().any(|line| line == "answered"),
            |time| time >= 40.0,
        );
        println!("  {what}: works");
        return ensure(finished.code == Some(0) && answered, fault);
    }
    let line = text.lines().find(|line| line.starts_with("error: "));
    let line = line.unwrap_or_default();
    println!("  {what}: {line}");
    ensure(finished.code == Some(1) && line.contains(remedy), fault)
}

/// Returns the time printed by ping.
fn round_trip_ms(text: &str) -> Option<f64> {
    let mut times = text.lines().filter_map(|line| line.split_once("time="));
    times.next()?.1.split(' ').next()?.parse().ok()
}

/// A containerd in the test's directories, stopped on drop.
struct Containerd {
    process: Child,
    socket: PathBuf,
}

impl Containerd {
    fn start(context: &Context) -> Result<Containerd> {
        let directory = context.scratch.join("containerd");
        let path = |name: &str| directory.join(name).display().to_string();
        // A longer path would exceed a socket address.
        let socket = PathBuf::from(format!("/run/longwire-test-{}.sock", std::process::id()));
        let configuration = format!(
            "version = 2\nroot = '{}'\nstate = '{}'\n\
             disabled_plugins = ['io.containerd.grpc.v1.cri']\n[grpc]\naddress = '{}'\n",
            path("root"),
            path("state"),
            socket.display()
        );
        let file = directory.join("config.toml");
        write(&file, configuration.as_bytes())?;
        let log = std::fs::File::create(directory.join("log")).at(&directory)?;
        let process = Command::new("containerd")
            .arg("--config")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .at("containerd")?;
        let engine = Containerd { process, socket };
        let start = Instant::now();
        while finish(&mut engine.ctr(&["version"]))?.code != Some(0) {
            ensure(start.elapsed() < TIMEOUT, || {
                format!("containerd does not answer: {}", path("log"))
            })?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(engine)
    }

    fn ctr(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("ctr");
        command.arg("--address").arg(&self.socket).args(arguments);
        command
    }

    /// Returns the command that runs a container to its end.
    fn container(&self, flags: &[&str], image: &str, words: &[&str]) -> Command {
        let mut command = self.ctr(&["run", "--rm"]);
        command.args(flags).args([image, "test"]).args(words);
        command
    }

    /// Returns the runtime's configuration of a container with these flags.
    fn spec(&self, flags: &[&str], image: &str) -> Result<String> {
        let mut create = self.ctr(&["containers", "create"]);
        run(create.args(flags).args([image, "spec", "true"]))?;
        let spec = text(&mut self.ctr(&["containers", "info", "--spec", "spec"]));
        run(&mut self.ctr(&["containers", "rm", "spec"]))?;
        spec
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .arg(self.process.id().to_string())
            .status();
        let _ = self.process.wait();
        for path in [
            self.socket.clone(),
            self.socket.with_extension("sock.ttrpc"),
        ] {
            let _ = std::fs::remove_file(path);
        }
    }
}
