//! Checks the image with containerd and runc, in directories of the test.

use std::fs::File;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::check::{Checked, Context, engines, ensure, needs, needs_root};
use crate::image::reference;
use crate::paths::{VERSION, root};
use crate::run::{At, Finished, Result, finish, read, run, stdout, text, write};
use crate::tree::{Node, Tree};

/// Command of most containers.
pub const PING: [&str; 8] = [
    "longwire", "exec", "--delay", "20ms", "--", "ping", "-c1", "far",
];

/// Command of containers with an ordinary user. In these containers, /proc/sys is read-only, so
/// only root can use `ping`.
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

/// Remedies in messages for root and for other users.
const AS_ROOT: &str =
    "This root has no CAP_SYS_ADMIN: start the container with --cap-add SYS_ADMIN";
const AS_USER: &str = "Run Longwire as root. A container needs --cap-add SYS_ADMIN";

/// UID of the ordinary user.
pub const USER: u32 = 1000;

/// A container's privileges, and whether `exec` works with them.
struct Rights {
    what: &'static str,
    flags: &'static [&'static str],
    works: bool,
}

/// Privileges to test. `--seccomp` selects the engines' default seccomp profile. The error message
/// names the flags of the last entry.
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
        what: "root, default seccomp profile",
        flags: &["--seccomp"],
        works: false,
    },
    Rights {
        what: "root, default seccomp profile, SYS_ADMIN",
        flags: &["--seccomp", "--cap-add", "CAP_SYS_ADMIN"],
        works: true,
    },
];

/// Runs the image with the engines packaged by Debian.
pub fn image(context: &Context) -> Checked {
    needs_root("containerd")?;
    needs(&["containerd", "ctr", "runc", "setpriv"])?;
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
        let what = format!("uid {USER}, {}", flags.join(" "));
        judge(&what, works, &finished, AS_USER)?;
    }
    // An ordinary user is root in the container. podman grants it SETFCAP, runc does not.
    for (capabilities, works) in [(&[][..], false), (&["CAP_SETFCAP"][..], true)] {
        let finished = bundle.run_rootless(capabilities)?;
        let what = format!("rootless runc {}", capabilities.join(" "));
        judge(&what, works, &finished, "--cap-add SETFCAP")?;
    }
    drop(engine);
    engines::podman(context, &image)?;
    engines::docker(context, &image)?;
    Ok(())
}

/// Checks a run of [`PING`] or [`CONNECT`]: it must print a reply that crossed the link, or an
/// error with this remedy.
pub fn judge(what: &str, works: bool, finished: &Finished, remedy: &str) -> Result<()> {
    let text = &finished.text;
    let fault = || format!("{what}: exit code {:?}: {text}", finished.code);
    if works {
        let is_answered = || text.lines().any(|line| line == "answered");
        let answered = round_trip_ms(text).map_or_else(is_answered, |time| time >= 40.0);
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

/// A daemon of an engine, ended on drop.
pub struct Daemon {
    process: Child,
    /// Sockets to remove when the daemon has ended.
    sockets: Vec<PathBuf>,
}

impl Daemon {
    /// Starts the daemon, and waits for at most `limit` until a request succeeds.
    pub fn start(
        command: &mut Command,
        log: &Path,
        sockets: Vec<PathBuf>,
        limit: Duration,
        request: impl Fn() -> Command,
    ) -> Result<Daemon> {
        let name = command.get_program().to_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(log).at(log)?);
        let process = command.spawn().at(&name)?;
        let daemon = Daemon { process, sockets };
        let start = Instant::now();
        while finish(&mut request())?.code != Some(0) {
            ensure(start.elapsed() < limit, || {
                format!("{} does not answer: {}", name.display(), log.display())
            })?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .arg(self.process.id().to_string())
            .status();
        let _ = self.process.wait();
        for path in &self.sockets {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A containerd in directories of the test.
struct Containerd {
    socket: PathBuf,
    _daemon: Daemon,
}

fn ctr(socket: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("ctr");
    command.arg("--address").arg(socket).args(arguments);
    command
}

impl Containerd {
    fn start(context: &Context) -> Result<Containerd> {
        let directory = context.scratch.join("containerd");
        let path = |name: &str| directory.join(name).display().to_string();
        // The path of the test's directory could be too long for a socket address.
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
        let daemon = Daemon::start(
            Command::new("containerd").arg("--config").arg(&file),
            &directory.join("log"),
            vec![socket.clone(), socket.with_extension("sock.ttrpc")],
            Duration::from_secs(20),
            || ctr(&socket, &["version"]),
        )?;
        Ok(Containerd {
            socket,
            _daemon: daemon,
        })
    }

    fn ctr(&self, arguments: &[&str]) -> Command {
        ctr(&self.socket, arguments)
    }

    /// Returns the command that runs a container to completion.
    fn container(&self, flags: &[&str], image: &str, words: &[&str]) -> Command {
        let mut command = self.ctr(&["run", "--rm"]);
        command.args(flags).args([image, "test"]).args(words);
        command
    }

    /// Returns the runtime configuration of a container with these flags.
    fn spec(&self, flags: &[&str], image: &str) -> Result<String> {
        let mut create = self.ctr(&["containers", "create"]);
        run(create.args(flags).args([image, "spec", "true"]))?;
        let spec = text(&mut self.ctr(&["containers", "info", "--spec", "spec"]));
        run(&mut self.ctr(&["containers", "rm", "spec"]))?;
        spec
    }
}

/// Returns an image's manifest entry and its merged layers.
fn read_image(path: &Path) -> Result<(Value, Tree)> {
    let image = Tree::from_tar(File::open(path).at(path)?)?;
    let content = |path: &str| match image.get(path) {
        Some(Node::File(_, content)) => Ok(content.as_slice()),
        _ => Err(format!("the image has no {path}")),
    };
    let mut saved: Value = serde_json::from_slice(content("manifest.json")?).at("image")?;
    let saved = saved[0].take();
    let mut files = Tree::default();
    for layer in saved["Layers"].as_array().into_iter().flatten() {
        let layer = content(layer.as_str().unwrap_or_default())?;
        for (path, node) in Tree::from_tar(GzDecoder::new(layer))?.iter() {
            files.insert(path, node.clone());
        }
    }
    Ok((saved, files))
}

/// An image unpacked into a directory.
#[derive(Debug)]
pub struct Bundle {
    directory: PathBuf,
}

impl Bundle {
    /// Unpacks an image's layers.
    pub fn unpack(context: &Context, image: &Path) -> Result<Bundle> {
        let (_, files) = read_image(image)?;
        let directory = context.scratch.join("bundle");
        files.write(&directory.join("rootfs"))?;
        let bundle = Bundle { directory };
        // Give ordinary users access. runc also writes to the directory.
        run(Command::new("chmod")
            .args(["-R", "a+rX"])
            .arg(&bundle.directory))?;
        chown(&bundle.directory, Some(USER), Some(USER)).at(&bundle.directory)?;
        Ok(bundle)
    }

    /// Runs a container with this configuration, as an ordinary user in the container.
    pub fn run_as_user(&self, spec: &str) -> Result<Finished> {
        let mut spec: Value = serde_json::from_str(spec).at("configuration")?;
        spec["process"]["user"] = json!({ "uid": USER, "gid": USER });
        // Like container engines, grant no capabilities: an ordinary user gets them only from the
        // program file.
        for set in ["effective", "permitted", "inheritable", "ambient"] {
            spec["process"]["capabilities"][set] = json!([]);
        }
        spec["linux"]["cgroupsPath"] = json!("/longwire-package-test");
        self.run(Command::new("runc"), spec, "as-user")
    }

    /// Runs a container as an ordinary user of this machine, with these additional capabilities.
    pub fn run_rootless(&self, capabilities: &[&str]) -> Result<Finished> {
        let configuration = self.directory.join("config.json");
        let _ = std::fs::remove_file(&configuration);
        run(as_user("runc")
            .args(["spec", "--rootless", "--bundle"])
            .arg(&self.directory))?;
        let spec = std::fs::read(&configuration).at(&configuration)?;
        let mut spec: Value = serde_json::from_slice(&spec).at("configuration")?;
        for set in ["bounding", "effective", "permitted"] {
            let set = &mut spec["process"]["capabilities"][set];
            set.as_array_mut()
                .ok_or("runc's configuration has no capabilities")?
                .extend(capabilities.iter().map(|name| json!(name)));
        }
        self.run(as_user("runc"), spec, "rootless")
    }

    fn run(&self, mut runc: Command, mut spec: Value, name: &str) -> Result<Finished> {
        spec["root"] = json!({ "path": self.directory.join("rootfs"), "readonly": true });
        spec["process"]["args"] = json!(CONNECT);
        spec["process"]["terminal"] = json!(false);
        let configuration = self.directory.join("config.json");
        write(&configuration, spec.to_string().as_bytes())?;
        let state = self.directory.join(format!("state-{name}"));
        runc.arg("--root").arg(state).args(["run", "--bundle"]);
        runc.arg(&self.directory).arg(format!("longwire-{name}"));
        finish(&mut runc)
    }
}

/// Returns a command run as an ordinary user.
fn as_user(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    let user = USER.to_string();
    command.args(["--reuid", &user, "--regid", &user]);
    command.args(["--clear-groups", program]);
    command
}

/// Unpacks the layers of the image over each other, and runs the program from the result.
pub fn kube_image(context: &Context) -> Checked {
    needs_root("chroot")?;
    needs(&["chroot"])?;
    let files = context.scratch.join("files");
    let (saved, tree) = read_image(&context.kube_image()?)?;
    let name = reference("longwire-kube");
    ensure(saved["RepoTags"][0] == name.as_str(), || {
        format!("{saved}: not {name}")
    })?;
    tree.write(&files)?;
    let program = |arguments: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(&files).arg("/usr/bin/longwire-kube");
        stdout(command.args(arguments))
    };
    let printed = program(&["crds"])?;
    let kept = read(&root().join("packaging/kubernetes/crds.yaml"))?;
    let other = || "`longwire-kube crds` prints other resources".to_owned();
    ensure(printed == kept, other)?;
    for role in ["agent", "controller"] {
        let help = program(&[role, "--help"])?;
        let nothing = || format!("`longwire-kube {role} --help` prints nothing");
        ensure(!help.is_empty(), nothing)?;
    }
    Ok(())
}
