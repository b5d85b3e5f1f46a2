//! The compared programs, and where to find them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use longwire::Error;
use serde::{Deserialize, Serialize};

/// A program that Longwire is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peer {
    #[serde(rename = "mahimahi")]
    Mahimahi,
    Rattan,
    #[serde(rename = "tcpreplay")]
    Tcpreplay,
    #[serde(rename = "TLEM")]
    Tlem,
}

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Peer::Mahimahi => "mahimahi",
            Peer::Rattan => "Rattan",
            Peer::Tcpreplay => "tcpreplay",
            Peer::Tlem => "TLEM",
        }
    }

    /// Returns the possible places of the file in a given folder. The first is also the name in
    /// PATH; TLEM is found only in a given folder.
    fn places(self) -> &'static [&'static str] {
        match self {
            Peer::Mahimahi => &["mm-delay", "bin/mm-delay", "src/frontend/mm-delay"],
            Peer::Rattan => &["rattan", "target/release/rattan"],
            Peer::Tcpreplay => &["tcpreplay", "bin/tcpreplay", "src/tcpreplay"],
            Peer::Tlem => &["apps/tlem/tlem.c"],
        }
    }

    /// Returns a remark on what to install or to pass.
    pub fn missing(self) -> String {
        let remedy = match self {
            Peer::Mahimahi => {
                "install mm-delay setuid root (github.com/ravinet/mahimahi) in PATH, or pass \
                 --mahimahi DIR"
            }
            Peer::Rattan => "install rattan (cargo install rattan) in PATH, or pass --rattan DIR",
            Peer::Tcpreplay => "install the package tcpreplay, or pass --tcpreplay PATH",
            Peer::Tlem => {
                "pass --tlem DIR, a source tree of netmap (github.com/luigirizzo/netmap), whose \
                 TLEM is compiled with cc"
            }
        };
        format!("{} is missing: {remedy}", self.name())
    }

    /// Returns the file of a program: `given`, or in the folder `given`, or else in the folders of
    /// `search`, the value of PATH.
    ///
    /// # Errors
    /// If `given` has no such file.
    pub fn find(self, given: Option<&Path>, search: &OsStr) -> Result<Option<PathBuf>, Error> {
        if let Some(given) = given {
            let places = self.places().iter().map(|place| given.join(place));
            let mut places = std::iter::once(given.to_owned()).chain(places);
            let found = places.find(|place| place.is_file());
            return found.map(Some).ok_or_else(|| {
                let (name, given) = (self.name(), given.display());
                Error::Usage(format!(
                    "no {name} in {given}: {}",
                    self.places().join(", ")
                ))
            });
        }
        let mut folders = std::env::split_paths(search).filter(|_| self != Peer::Tlem);
        Ok(folders.find_map(|folder| {
            let file = folder.join(self.places()[0]);
            file.is_file().then_some(file)
        }))
    }
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::Folder;

    use super::*;

    #[test]
    fn missing_programs_are_remarks_that_say_what_to_do() {
        let nowhere = Folder::new();
        for (peer, remedy) in [
            (Peer::Mahimahi, "pass --mahimahi DIR"),
            (Peer::Rattan, "pass --rattan DIR"),
            (Peer::Tcpreplay, "pass --tcpreplay PATH"),
            (Peer::Tlem, "pass --tlem DIR"),
        ] {
            let found = peer.find(None, nowhere.path().as_os_str());
            assert_eq!(found.expect("no path was given"), None);
            let remark = peer.missing();
            let start = format!("{} is missing: ", peer.name());
            let says = remark.starts_with(&start) && remark.contains(remedy);
            assert!(says, "{remark}");
            assert_eq!(serde_json::json!(peer), peer.name());
        }
        let error = Peer::Rattan.find(Some(nowhere.path()), OsStr::new(""));
        let error = error.expect_err("it is not there").to_string();
        assert!(error.contains("no Rattan in"), "{error}");
    }

    #[test]
    fn programs_are_found_in_path_and_in_build_folders() {
        let folder = Folder::new();
        let file = |name: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("created");
            std::fs::write(&file, "").expect("written");
            file
        };
        let [in_path, built, source] =
            ["mm-delay", "target/release/rattan", "apps/tlem/tlem.c"].map(file);
        let find = |peer: Peer, given: Option<&Path>| {
            let found = peer.find(given, folder.path().as_os_str());
            found.expect("the path is right")
        };
        assert_eq!(find(Peer::Mahimahi, None), Some(in_path));
        assert_eq!(find(Peer::Rattan, Some(folder.path())), Some(built.clone()));
        assert_eq!(find(Peer::Rattan, Some(&built)), Some(built));
        assert_eq!(find(Peer::Rattan, None), None);
        assert_eq!(find(Peer::Tlem, Some(folder.path())), Some(source));
        assert_eq!(find(Peer::Tlem, None), None);
    }
}
