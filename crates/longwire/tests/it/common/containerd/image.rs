//! An OCI image built from this machine's programs and their libraries, without a registry.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use longwire_testbed::support::Folder;
use serde_json::{Value, json};

use crate::common::program::run;

pub const NAME: &str = "longwire.test/tools:1";

/// Programs in the image; the applets are links to busybox.
const PROGRAMS: [&str; 4] = ["iperf3", "ping", "curl", "busybox"];
const APPLETS: [&str; 6] = ["sh", "sleep", "httpd", "tail", "cat", "touch"];

/// Returns the contents of `/www/data`. The pattern's period is not a power of two, so that
/// repeated or missing blocks show.
pub fn data() -> Vec<u8> {
    (0..4_000_003_u32).map(|at| (at % 251) as u8).collect()
}

/// Writes the image to a folder as a tar in OCI layout; returns its path.
pub fn write(folder: &Folder) -> String {
    let root = folder.path().join("image-root");
    fill(&root);
    let layout = folder.path().join("image-layout");
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).expect("directories");
    let layer = blobs.join("layer");
    run(format!(
        "tar -C {} -cf {} .",
        root.display(),
        layer.display()
    ))
    .well();
    let layer = name_by_digest(&layer, "tar");
    let config = json!({
        "architecture": architecture(), "os": "linux",
        "config": { "Env": ["PATH=/bin"], "Cmd": ["sleep", "1000"] },
        "rootfs": { "type": "layers", "diff_ids": [layer["digest"]] },
    });
    let config = blob(&blobs, &config, "config");
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": [layer],
    });
    let mut manifest = blob(&blobs, &manifest, "manifest");
    manifest["annotations"] = json!({
        "io.containerd.image.name": NAME, "org.opencontainers.image.ref.name": NAME,
    });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    fs::write(layout.join("index.json"), index.to_string()).expect("a file");
    let version = json!({ "imageLayoutVersion": "1.0.0" });
    fs::write(layout.join("oci-layout"), version.to_string()).expect("a file");
    let image = folder.file("image.tar");
    run(format!("tar -C {} -cf {image} .", layout.display())).well();
    image
}

/// Writes the files of a container's root directory.
fn fill(root: &Path) {
    for directory in ["bin", "tmp", "www", "etc"] {
        fs::create_dir_all(root.join(directory)).expect("directories");
    }
    for program in PROGRAMS {
        let path = run(format!("which {program}")).well().stdout;
        let path = path.trim();
        let target = root.join("bin").join(program);
        fs::copy(path, target).expect("a copy");
        let libraries = run(format!("ldd {path}")).well().stdout;
        let paths = libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'));
        for library in paths {
            let copy = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().expect("a directory")).expect("directories");
            fs::copy(library, copy).expect("a copy");
        }
    }
    for applet in APPLETS {
        symlink("busybox", root.join("bin").join(applet)).expect("a link");
    }
    fs::write(root.join("www/data"), data()).expect("a file");
    let users = "root:x:0:0:root:/:/bin/sh\n";
    fs::write(root.join("etc/passwd"), users).expect("a file");
}

/// Writes a blob; returns its descriptor.
fn blob(blobs: &Path, value: &Value, kind: &str) -> Value {
    let file = blobs.join(kind);
    fs::write(&file, value.to_string()).expect("a file");
    name_by_digest(&file, kind)
}

/// Renames a blob to its digest; returns its descriptor.
fn name_by_digest(file: &Path, kind: &str) -> Value {
    let sum = run(format!("sha256sum {}", file.display())).well().stdout;
    let digest = sum.split_whitespace().next().expect("a sum").to_owned();
    let size = fs::metadata(file).expect("a file").len();
    fs::rename(file, file.with_file_name(&digest)).expect("a name");
    let media = match kind {
        "tar" => "application/vnd.oci.image.layer.v1.tar".to_owned(),
        kind => format!("application/vnd.oci.image.{kind}.v1+json"),
    };
    json!({ "mediaType": media, "digest": format!("sha256:{digest}"), "size": size })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        "x86_64" => "amd64",
        other => other,
    }
}
