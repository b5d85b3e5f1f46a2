//! Properties of ELF programs on which packages depend: required glibc, shared libraries and
//! location of debug information.

use object::elf::SHT_GNU_VERNEED;
use object::read::elf::{Dyn, ElfFile64, SectionHeader};
use object::{Endianness, Object, ObjectSection};

use crate::run::Result;

type File<'a> = ElfFile64<'a, Endianness>;

/// A glibc version, such as `GLIBC_2.17`: major, minor, patch.
pub type GlibcVersion = (u32, u32, u32);

/// Properties of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Elf {
    /// Architecture as named in target triples: `x86_64` or `aarch64`.
    pub architecture: &'static str,
    /// Newest glibc version required by a symbol; `None` for static programs.
    pub glibc: Option<GlibcVersion>,
    /// Shared libraries required by the program.
    pub libraries: Vec<String>,
    /// Whether the program contains line tables.
    pub has_lines: bool,
    /// Whether the program has symbols other than those for dynamic linking.
    pub has_symbols: bool,
    /// File and CRC-32 of the debug information, if the program names one.
    pub debug_link: Option<(String, u32)>,
}

impl Elf {
    /// Reads a 64-bit program for x86_64 or aarch64; fails for other files.
    pub fn read(bytes: &[u8]) -> Result<Elf> {
        let at = |error: object::Error| format!("not a 64-bit ELF program: {error}");
        let file = File::parse(bytes).map_err(at)?;
        let architecture = match file.architecture() {
            object::Architecture::X86_64 => "x86_64",
            object::Architecture::Aarch64 => "aarch64",
            other => {
                return Err(format!(
                    "no packages for {other:?}; supported: x86_64, aarch64"
                ));
            }
        };
        let link = file.gnu_debuglink().map_err(at)?;
        let versions = versions(&file).map_err(|error| format!("required versions: {error}"))?;
        let has = |name: &str| {
            let section = file.section_by_name(name);
            section.is_some_and(|section| section.size() > 0)
        };
        Ok(Elf {
            architecture,
            glibc: versions.iter().filter_map(|name| glibc_version(name)).max(),
            libraries: libraries(&file).map_err(|error| format!("required libraries: {error}"))?,
            has_lines: has(".debug_line"),
            has_symbols: has(".symtab"),
            debug_link: link.map(|(name, crc)| (String::from_utf8_lossy(name).into_owned(), crc)),
        })
    }

    /// Returns the architecture as Debian and container images name it.
    pub fn debian_architecture(&self) -> &'static str {
        debian_architecture(self.architecture)
    }

    /// Formats the required glibc version.
    pub fn glibc_text(&self) -> String {
        match self.glibc {
            Some((major, minor, 0)) => format!("{major}.{minor}"),
            Some((major, minor, patch)) => format!("{major}.{minor}.{patch}"),
            None => "none".to_owned(),
        }
    }
}

/// Returns an architecture of [`Elf`] as Debian and container images name it.
fn debian_architecture(architecture: &str) -> &'static str {
    match architecture {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

/// Returns the required symbol versions, from the section `.gnu.version_r`.
fn versions(file: &File<'_>) -> object::Result<Vec<String>> {
    let (endian, bytes, sections) = (file.endian(), file.data(), file.elf_section_table());
    let mut found = Vec::new();
    for section in sections.iter() {
        if section.sh_type(endian) != SHT_GNU_VERNEED {
            continue;
        }
        let Some((mut needs, link)) = section.gnu_verneed(endian, bytes)? else {
            continue;
        };
        let strings = sections.strings(endian, bytes, link)?;
        while let Some((_, mut versions)) = needs.next()? {
            while let Some(version) = versions.next()? {
                let name = version.name(endian, strings)?;
                found.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Ok(found)
}

fn glibc_version(name: &str) -> Option<GlibcVersion> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.');
    let mut next = || numbers.next().map_or(Some(0), |word| word.parse().ok());
    Some((next()?, next()?, next()?))
}

/// Returns the names of required libraries.
fn libraries(file: &File<'_>) -> object::Result<Vec<String>> {
    let (endian, bytes, sections) = (file.endian(), file.data(), file.elf_section_table());
    let Some((entries, link)) = sections.dynamic(endian, bytes)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, bytes, link)?;
    let needed = entries.iter();
    let needed = needed.filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED);
    let names = needed.map(|entry| {
        let name = entry.string(endian, strings)?;
        Ok(String::from_utf8_lossy(name).into_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let newest = [
            "GLIBC_2.9",
            "GLIBC_2.17",
            "GLIBC_2.2.5",
            "GCC_3.0",
            "GLIBC_PRIVATE",
        ];
        let newest = newest.iter().filter_map(|name| glibc_version(name)).max();
        assert_eq!(newest, Some((2, 17, 0)));
    }

    #[test]
    fn this_test_is_a_dynamic_program_with_symbols() {
        let path = std::env::current_exe().expect("the test has a path");
        let elf = Elf::read(&std::fs::read(path).expect("it can be read")).expect("it is ELF");
        assert!(elf.glibc >= Some((2, 2, 0)), "{elf:?}");
        assert!(
            elf.libraries.iter().any(|name| name == "libc.so.6"),
            "{elf:?}"
        );
        assert!(elf.has_symbols && elf.debug_link.is_none(), "{elf:?}");
    }

    #[test]
    fn architectures_have_the_names_of_debian() {
        for (architecture, name) in [("x86_64", "amd64"), ("aarch64", "arm64")] {
            assert_eq!(debian_architecture(architecture), name);
        }
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Elf::read(b"#!/bin/sh\n").is_err());
    }
}
