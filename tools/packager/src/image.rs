//! An OCI image as a tar in two formats: the OCI image layout, and the `manifest.json` of `docker
//! save` for older engines.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::paths::{BuildPaths, VERSION, rfc3339};
use crate::program::Program;
use crate::run::{At, Result, write};
use crate::stage::archive_name;
use crate::tree::{Tree, gzip};

/// Prefix of image names; program name and tag follow.
const REGISTRY: &str = "ghcr.io/longwire/";

const TYPE_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const TYPE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const TYPE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const TYPE_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A layer: its files, and their origin.
#[derive(Debug)]
pub struct Layer {
    pub tree: Tree,
    /// Line in the image's history.
    pub created_by: String,
}

/// Writes the image of a program, on top of base layers.
pub fn write_image(paths: &BuildPaths, program: &Program, layers: &[Layer]) -> Result<()> {
    let architecture = program.elf.debian_architecture();
    let image = image(program.name, layers, architecture, paths.time)?;
    let name = archive_name(program);
    let path = paths.package(&format!("{}-oci.tar", name.trim_end_matches("-gnu")));
    write(&path, &image.tar(paths.time)?)
}

/// Returns the image name of a program, with its tag.
pub fn reference(program: &str) -> String {
    format!("{REGISTRY}{program}:{VERSION}")
}

/// Returns the contents of the tar for a program's image.
fn image(name: &str, layers: &[Layer], architecture: &str, time: u64) -> Result<Tree> {
    let mut files = Tree::default();
    let mut blob = |kind: &str, content: Vec<u8>| -> Value {
        let digest = hex(&Sha256::digest(&content));
        let size = content.len();
        files.file(&format!("blobs/sha256/{digest}"), content);
        json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size })
    };
    let (mut parts, mut plain, mut history) = (Vec::new(), Vec::new(), Vec::new());
    let created = rfc3339(time);
    for layer in layers {
        let tar = layer.tree.tar(time)?;
        plain.push(format!("sha256:{}", hex(&Sha256::digest(&tar))));
        parts.push(blob(TYPE_LAYER, gzip(&tar)?));
        history.push(json!({ "created": created, "created_by": layer.created_by }));
    }
    let config = json!({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": configuration(name),
        "rootfs": { "type": "layers", "diff_ids": plain },
        "history": history,
    });
    let config = blob(TYPE_CONFIG, bytes(&config)?);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": TYPE_MANIFEST, "config": config, "layers": parts,
    });
    let mut manifest = blob(TYPE_MANIFEST, bytes(&manifest)?);
    manifest["platform"] = json!({ "architecture": architecture, "os": "linux" });
    manifest["annotations"] = json!({
        "io.containerd.image.name": reference(name),
        "org.opencontainers.image.ref.name": VERSION,
    });
    let index = json!({ "schemaVersion": 2, "mediaType": TYPE_INDEX, "manifests": [manifest] });
    files.file("index.json", bytes(&index)?);
    let layout = json!({ "imageLayoutVersion": "1.0.0" });
    files.file("oci-layout", bytes(&layout)?);
    let layers: Vec<String> = parts.iter().map(path).collect();
    let saved = json!([{
        "Config": path(&config), "RepoTags": [reference(name)], "Layers": layers,
    }]);
    files.file("manifest.json", bytes(&saved)?);
    Ok(files)
}

fn configuration(name: &str) -> Value {
    json!({
        "Entrypoint": [format!("/usr/bin/{name}")],
        "Cmd": ["--help"],
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        "WorkingDir": "/work",
        "Labels": {
            "org.opencontainers.image.title": name,
            "org.opencontainers.image.version": VERSION,
            "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
            "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
        },
    })
}

/// Returns the path of a blob in the tar.
fn path(descriptor: &Value) -> String {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    format!("blobs/{}", digest.replace(':', "/"))
}

fn bytes(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(value).at("image")
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::tree::Node;

    fn content<'a>(image: &'a Tree, path: &str) -> &'a [u8] {
        match image.get(path) {
            Some(Node::File(_, content)) => content,
            other => panic!("{path}: {other:?}"),
        }
    }

    fn json_at(image: &Tree, path: &str) -> Value {
        serde_json::from_slice(content(image, path)).expect("it is JSON")
    }

    #[test]
    fn both_forms_lead_to_the_same_files() {
        let mut tree = Tree::default();
        tree.program("usr/bin/longwire", b"program".to_vec());
        let created_by = "test".to_owned();
        let layers = [Layer {
            tree: tree.clone(),
            created_by,
        }];
        let image = image("longwire", &layers, "amd64", 7).expect("it is made");
        // Manifest according to the index of the OCI layout.
        let index = json_at(&image, "index.json");
        let manifest = json_at(&image, &path(&index["manifests"][0]));
        let config = json_at(&image, &path(&manifest["config"]));
        // Manifest of `docker save`.
        let saved = json_at(&image, "manifest.json");
        assert_eq!(saved[0]["Config"], path(&manifest["config"]));
        assert_eq!(saved[0]["Layers"][0], path(&manifest["layers"][0]));
        // The layer has both digests.
        let packed = content(&image, &path(&manifest["layers"][0]));
        assert_eq!(manifest["layers"][0]["size"], packed.len());
        let mut plain = Vec::new();
        let mut reader = flate2::read::GzDecoder::new(packed);
        reader.read_to_end(&mut plain).expect("it is gzip");
        let digest = format!("sha256:{}", hex(&Sha256::digest(&plain)));
        assert_eq!(config["rootfs"]["diff_ids"][0], digest);
        assert_eq!(Tree::from_tar(plain.as_slice()), Ok(tree));
    }

    #[test]
    fn names_of_blobs_are_their_digests() {
        let image = image("longwire-kube", &[], "arm64", 7).expect("it is made");
        let mut count = 0;
        for (path, node) in image.iter() {
            if let (Some(digest), Node::File(_, content)) =
                (path.strip_prefix("blobs/sha256/"), node)
            {
                assert_eq!(digest, hex(&Sha256::digest(content)));
                count += 1;
            }
        }
        assert_eq!(count, 2, "configuration and manifest");
    }
}
