//! File trees: contents of archives and image layers.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::run::{At, Result, write};

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory with its mode.
    Directory(u32),
    /// A regular file with its mode.
    File(u32, Vec<u8>),
    /// A symbolic link with its target.
    Link(String),
}

/// Files by path, without a leading slash. They are sorted, so that equal trees yield equal
/// archives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Tree {
    /// Adds a file that all users can read.
    pub fn file(&mut self, path: &str, content: Vec<u8>) {
        self.insert(path, Node::File(0o644, content));
    }

    /// Adds an executable file.
    pub fn program(&mut self, path: &str, content: Vec<u8>) {
        self.insert(path, Node::File(0o755, content));
    }

    /// Adds a file, a directory or a link, and its parent directories.
    pub fn insert(&mut self, path: &str, node: Node) {
        for (end, _) in path.match_indices('/') {
            let parent = self.nodes.entry(path[..end].to_owned());
            parent.or_insert(Node::Directory(0o755));
        }
        self.nodes.insert(path.to_owned(), node);
    }

    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// Returns paths and nodes in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Returns the tree nested in a directory of this name.
    pub fn inside(&self, directory: &str) -> Tree {
        let mut tree = Tree::default();
        for (path, node) in self.iter() {
            tree.insert(&format!("{directory}/{path}"), node.clone());
        }
        tree
    }

    /// Returns the subtree with the paths for which `keep` is true.
    pub fn filter(&self, keep: impl Fn(&str) -> bool) -> Tree {
        let mut tree = Tree::default();
        for (path, node) in self.iter().filter(|(path, _)| keep(path)) {
            tree.insert(path, node.clone());
        }
        tree
    }

    /// Converts the tree to a tar archive. All files belong to root and have this timestamp, in
    /// seconds since 1970.
    pub fn tar(&self, time: u64) -> Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        for (path, node) in self.iter() {
            append(&mut builder, path, node, time).at(path)?;
        }
        builder.into_inner().at("tar")
    }

    /// Reads a tar archive: directories, regular files and symbolic links.
    pub fn from_tar(archive: impl Read) -> Result<Tree> {
        let mut tree = Tree::default();
        let mut archive = tar::Archive::new(archive);
        for entry in archive.entries().at("tar")? {
            let mut entry = entry.at("tar")?;
            let path = entry.path().at("tar")?.to_string_lossy().into_owned();
            let path = path.trim_start_matches("./").trim_matches('/').to_owned();
            let mode = entry.header().mode().at(&path)? & 0o7777;
            let node = match entry.header().entry_type() {
                EntryType::Directory => Node::Directory(mode),
                EntryType::Regular => {
                    let mut content = Vec::new();
                    entry.read_to_end(&mut content).at(&path)?;
                    Node::File(mode, content)
                }
                EntryType::Symlink => {
                    let target = entry.link_name().at(&path)?.unwrap_or_default();
                    Node::Link(target.to_string_lossy().into_owned())
                }
                // The packages in use have no files of other types.
                _ => continue,
            };
            if !path.is_empty() {
                tree.insert(&path, node);
            }
        }
        Ok(tree)
    }

    /// Writes the tree to a directory.
    pub fn write(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).at(directory)?;
        for (path, node) in self.iter() {
            let path = directory.join(path);
            match node {
                Node::Directory(_) => fs::create_dir_all(&path).at(&path)?,
                Node::File(mode, content) => {
                    write(&path, content)?;
                    fs::set_permissions(&path, Permissions::from_mode(*mode)).at(&path)?;
                }
                Node::Link(target) => symlink(target, &path).at(&path)?,
            }
        }
        Ok(())
    }
}

fn append(
    builder: &mut Builder<Vec<u8>>,
    path: &str,
    node: &Node,
    time: u64,
) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    match node {
        Node::Directory(mode) => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(*mode);
            header.set_size(0);
            builder.append_data(&mut header, format!("{path}/"), std::io::empty())
        }
        Node::File(mode, content) => {
            header.set_entry_type(EntryType::Regular);
            header.set_mode(*mode);
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, path, content.as_slice())
        }
        Node::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            builder.append_link(&mut header, path, target)
        }
    }
}

/// Compresses data with gzip, without a name or time.
pub fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(content).at("gzip")?;
    writer.finish().at("gzip")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.program("usr/bin/longwire", b"program".to_vec());
        tree.insert("bin", Node::Link("usr/bin".to_owned()));
        tree.insert("tmp", Node::Directory(0o1777));
        // The path is too long for the field in a tar header.
        tree.file(
            &format!("usr/share/{}/x", "long-".repeat(40)),
            vec![7; 1000],
        );
        tree
    }

    #[test]
    fn archives_hold_the_tree() {
        let tree = tree();
        let archive = tree.tar(1_000_000_000).expect("it is written");
        assert_eq!(Tree::from_tar(archive.as_slice()), Ok(tree));
    }

    #[test]
    fn the_order_of_insertion_does_not_show() {
        let mut other = Tree::default();
        let nodes: Vec<_> = tree().nodes.into_iter().collect();
        for (path, node) in nodes.into_iter().rev() {
            other.insert(&path, node);
        }
        assert_eq!(other.tar(1), tree().tar(1));
        assert_ne!(other.tar(1), tree().tar(2));
    }

    #[test]
    fn gzip_has_no_time() {
        let packed = gzip(b"text").expect("it is compressed");
        assert_eq!(packed[4..8], [0; 4]);
    }
}
