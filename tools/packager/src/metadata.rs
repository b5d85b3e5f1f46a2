//! The crates of a program: bill of materials and licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::image::hex;
use crate::paths::{BuildPaths, VERSION, rfc3339};
use crate::program::{Program, Source};
use crate::run::{At, Result, list, read, text};

/// Name and version of a crate.
type Id = (String, String);

/// A crate of a program.
#[derive(Debug)]
struct Crate {
    licence: String,
    repository: Option<String>,
    directory: PathBuf,
    /// Checksum in the registry; `None` for crates of this repository.
    checksum: Option<String>,
    dependencies: BTreeSet<Id>,
}

/// Crates whose code is part of the program, without crates used only by the build.
#[derive(Debug)]
pub struct Metadata {
    crates: BTreeMap<Id, Crate>,
}

impl Metadata {
    /// Queries cargo for the crates of a program.
    pub fn read(source: Source, architecture: &str) -> Result<Metadata> {
        let workspace = source.workspace();
        let triple = format!("{architecture}-unknown-linux-gnu");
        let cargo = |task: &str| {
            let mut cargo = Command::new("cargo");
            cargo.args([task, "--locked"]).current_dir(&workspace);
            cargo
        };
        // `cargo tree` resolves the features of one package, which `cargo metadata` cannot.
        let mut tree = cargo("tree");
        tree.args(["--package", source.name, "--target", &triple]);
        tree.args(["--edges", "normal,no-proc-macro", "--prefix", "none"]);
        let tree = text(tree.args(["--format", "{p}"]))?;
        let used: BTreeSet<Id> = tree.lines().filter_map(id_of_tree).collect();
        let mut all = cargo("metadata");
        all.args(["--format-version", "1", "--filter-platform", &triple]);
        let all: Value = serde_json::from_str(&text(&mut all)?).at("cargo metadata")?;
        let lock = String::from_utf8_lossy(&read(&workspace.join("Cargo.lock"))?).into_owned();
        let checksums = checksums(&lock);
        let mut crates = BTreeMap::new();
        let ids = ids(&all);
        for package in list_of(&all["packages"]) {
            let Some(id) = ids.get(word(&package["id"])).filter(|id| used.contains(id)) else {
                continue;
            };
            let manifest = Path::new(word(&package["manifest_path"]));
            let found = Crate {
                licence: word(&package["license"]).replace('/', " OR "),
                repository: package["repository"].as_str().map(str::to_owned),
                directory: manifest.parent().unwrap_or(manifest).to_owned(),
                checksum: checksums.get(id).cloned(),
                dependencies: BTreeSet::new(),
            };
            crates.insert(id.clone(), found);
        }
        add_dependencies(&mut crates, &all, &ids);
        if crates.len() != used.len() {
            let what = "cargo tree and cargo metadata name different crates";
            return Err(format!("{what}: {} and {}", used.len(), crates.len()));
        }
        Ok(Metadata { crates })
    }

    /// Returns the bill of materials of a program, in CycloneDX 1.5.
    pub fn bill(&self, paths: &BuildPaths, program: &Program) -> Result<Vec<u8>> {
        let digest = hex(&Sha256::digest(&program.bytes));
        let mut components = Vec::new();
        let mut dependencies = Vec::new();
        for (id, found) in &self.crates {
            let on: Vec<String> = found.dependencies.iter().map(reference).collect();
            dependencies.push(json!({ "ref": reference(id), "dependsOn": on }));
            if id.0 != "longwire" {
                components.push(component(id, found));
            }
        }
        let main = json!({
            "type": "application",
            "bom-ref": reference(&("longwire".to_owned(), VERSION.to_owned())),
            "name": "longwire",
            "version": VERSION,
            "purl": format!("pkg:cargo/longwire@{VERSION}"),
            "licenses": [{ "expression": env!("CARGO_PKG_LICENSE") }],
            "hashes": [{ "alg": "SHA-256", "content": digest }],
        });
        let bill = json!({
            "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "serialNumber": serial(&digest),
            "version": 1,
            "metadata": {
                "timestamp": rfc3339(paths.time),
                "tools": { "components": [{
                    "type": "application", "name": "longwire-packager", "version": VERSION,
                }] },
                "component": main,
            },
            "components": components,
            "dependencies": dependencies,
        });
        serde_json::to_vec_pretty(&bill).at("bill of materials")
    }

    /// Returns the licences of third-party crates, each text once.
    pub fn notices(&self) -> Result<String> {
        let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut page = String::from(
            "Longwire is licensed under Apache-2.0 or MIT, at your option. The program also\n\
             contains the standard library of Rust (MIT or Apache-2.0) and these crates:\n\n",
        );
        for ((name, version), found) in &self.crates {
            if found.checksum.is_none() {
                continue;
            }
            let _ = writeln!(page, "{name} {version}: {}", found.licence);
            for path in list(&found.directory)?
                .iter()
                .filter(|path| is_licence(path))
            {
                let text = String::from_utf8_lossy(&read(path)?).replace('\r', "");
                let crates = texts.entry(text.trim().to_owned()).or_default();
                crates.insert(format!("{name} {version}"));
            }
        }
        for (text, crates) in texts {
            let crates: Vec<String> = crates.into_iter().collect();
            let line = "-".repeat(72);
            let _ = write!(page, "\n{line}\n{}\n\n{text}\n", crates.join(", "));
        }
        Ok(page)
    }
}

fn component(id: &Id, found: &Crate) -> Value {
    let (name, version) = id;
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(id),
        "name": name,
        "version": version,
        "scope": "required",
        "purl": reference(id),
        "licenses": [{ "expression": found.licence }],
    });
    if let Some(checksum) = &found.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &found.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

fn reference((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// Returns a UUID (version 8, RFC 9562) derived from the program.
fn serial(digest: &str) -> String {
    let ranges = [0..8, 8..12, 13..16, 17..20, 20..32];
    let [a, b, c, d, e] = ranges.map(|range| &digest[range]);
    format!("urn:uuid:{a}-{b}-8{c}-8{d}-{e}")
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_uppercase();
    let mut starts = ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter();
    path.is_file() && starts.any(|start| name.starts_with(start))
}

/// Parses a line such as `nix v0.31.0` or `longwire v0.1.0 (/path)`.
fn id_of_tree(line: &str) -> Option<Id> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    Some((name.to_owned(), version.strip_prefix('v')?.to_owned()))
}

/// Returns crate names and versions by cargo's package ID.
fn ids(metadata: &Value) -> BTreeMap<&str, Id> {
    let packages = list_of(&metadata["packages"]).iter().map(|package| {
        let (name, version) = (word(&package["name"]), word(&package["version"]));
        (word(&package["id"]), (name.to_owned(), version.to_owned()))
    });
    packages.collect()
}

fn add_dependencies(crates: &mut BTreeMap<Id, Crate>, metadata: &Value, ids: &BTreeMap<&str, Id>) {
    let used: BTreeSet<Id> = crates.keys().cloned().collect();
    for node in list_of(&metadata["resolve"]["nodes"]) {
        let Some(found) = ids.get(word(&node["id"])).and_then(|id| crates.get_mut(id)) else {
            continue;
        };
        for dependency in list_of(&node["deps"]) {
            let is_normal = list_of(&dependency["dep_kinds"]).iter();
            let is_normal = is_normal.map(|kind| &kind["kind"]).any(Value::is_null);
            let id = ids.get(word(&dependency["pkg"]));
            if let Some(id) = id.filter(|id| is_normal && used.contains(*id)) {
                found.dependencies.insert(id.clone());
            }
        }
    }
}

fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let field = |entry: &str, name: &str| {
        let start = format!("{name} = \"");
        let line = entry.lines().find_map(|line| line.strip_prefix(&start))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let entries = lock.split("[[package]]").filter_map(|entry| {
        let id = (field(entry, "name")?, field(entry, "version")?);
        Some((id, field(entry, "checksum")?))
    });
    entries.collect()
}

fn list_of(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::LONGWIRE;

    #[test]
    fn the_program_has_its_crates_and_no_others() {
        let metadata = Metadata::read(LONGWIRE, "x86_64").expect("cargo knows them");
        let names = metadata.crates.keys().map(|(name, _)| name.as_str());
        let names: Vec<&str> = names.collect();
        for name in ["longwire", "longwire-engine", "tokio", "nix", "notosans"] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
        // A test dependency, a procedural macro, another program and its dependency.
        for name in ["proptest", "serde_derive", "longwire-packager", "sha2"] {
            assert!(!names.contains(&name), "{name} is in {names:?}");
        }
        let longwire = &metadata.crates[&("longwire".to_owned(), VERSION.to_owned())];
        let on = |name: &str| longwire.dependencies.iter().any(|(on, _)| on == name);
        assert!(on("longwire-engine") && !on("proptest"), "{longwire:?}");
    }

    #[test]
    fn licences_of_others_have_their_texts() {
        let metadata = Metadata::read(LONGWIRE, "x86_64").expect("cargo knows them");
        let page = metadata.notices().expect("they can be read");
        assert!(page.contains("\ntokio ") && page.contains("Permission is hereby granted"));
        assert!(!page.contains("\nlongwire-engine "));
    }

    #[test]
    fn crates_of_the_registry_have_checksums() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"12\"\n\n\
                    [[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let found = checksums(lock);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&("a".to_owned(), "1.0.0".to_owned())], "12");
    }
}
