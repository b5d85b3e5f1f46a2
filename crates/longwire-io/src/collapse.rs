//! Moves existing memory to huge pages.

use std::fs;

/// Minimum resident size of a mapping to move, in bytes.
const WORTH: u64 = 4 << 20;

/// Minimum resident share of a mapping, in percent. The kernel allocates the remaining pages.
const FILLED: u64 = 75;

/// An anonymous mapping.
#[derive(Debug, PartialEq, Eq)]
struct HeapMapping {
    start: u64,
    end: u64,
    /// Resident bytes.
    resident: u64,
}

/// Moves this process's heap to huge pages. The frames of many links spread over many pages, and a
/// TLB miss costs about as much as the access itself. Returns the number of bytes moved; 0 before
/// Linux 6.1, without huge pages, or with too little memory.
///
/// Takes a few milliseconds per 100 MB.
pub fn collapse_heap() -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut granted = 0;
    for HeapMapping { start, end, .. } in mappings(&maps) {
        let len = end - start;
        // SAFETY: the request changes the mapping but not its contents, and fails for memory that
        // is no longer mapped.
        let done = unsafe {
            libc::madvise(
                start as *mut libc::c_void,
                len as usize,
                libc::MADV_COLLAPSE,
            )
        };
        granted += if done == 0 { len } else { 0 };
    }
    granted
}

/// Returns the large, well-filled mappings listed in an `smaps` file.
fn mappings(maps: &str) -> Vec<HeapMapping> {
    let mut found: Vec<HeapMapping> = Vec::new();
    let mut is_heap = false;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if let Some((start, end)) = range(first) {
            // The word after offset, device and inode: absent, or a name.
            let name = words.nth(3).unwrap_or("");
            is_heap = second == "rw-p" && matches!(name, "" | "[heap]");
            if is_heap {
                found.push(HeapMapping {
                    start,
                    end,
                    resident: 0,
                });
            }
        } else if first == "Rss:"
            && is_heap
            && let Some(mapping) = found.last_mut()
        {
            mapping.resident = second.parse::<u64>().unwrap_or(0) * 1_024;
        }
    }
    found.retain(|mapping| {
        let len = mapping.end - mapping.start;
        mapping.resident >= WORTH && mapping.resident >= len / 100 * FILLED
    });
    found
}

fn range(word: &str) -> Option<(u64, u64)> {
    let (start, end) = word.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    Some((start, u64::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Mapping;

    #[test]
    fn full_anonymous_mappings_are_found() {
        let maps = "\
1000000-2000000 rw-p 00000000 00:00 0                                  [heap]
Size:              16384 kB
Rss:               16000 kB
Anonymous:         16000 kB
7f0000000000-7f0001000000 rw-p 00000000 00:00 0
Rss:                 100 kB
7f1000000000-7f1001000000 rw-p 00000000 00:00 0
Rss:               16384 kB
7f2000000000-7f2001000000 rw-p 00000000 08:01 77                         /tmp/file
Rss:               16384 kB
7f3000000000-7f3001000000 r--p 00000000 00:00 0
Rss:               16384 kB
";
        let starts: Vec<u64> = mappings(maps).iter().map(|found| found.start).collect();
        assert_eq!(starts, [0x100_0000, 0x7f10_0000_0000]);
    }

    /// A mapping between two inaccessible guard regions.
    struct Region(Mapping);

    const GUARD: usize = 2 << 20;
    const LEN: usize = 16 << 20;

    impl Region {
        fn new() -> Region {
            let mapping = Mapping::anonymous(LEN + 2 * GUARD, 0).expect("memory");
            for at in [0, GUARD + LEN] {
                // SAFETY: the guard is at an end of this value's mapping, and nothing accesses it.
                let closed = unsafe {
                    let end = mapping.start().add(at).as_ptr().cast();
                    libc::mprotect(end, GUARD, libc::PROT_NONE)
                };
                assert_eq!(closed, 0);
            }
            Region(mapping)
        }

        fn bytes(&mut self) -> &mut [u8] {
            // SAFETY: the bytes are mapped for reading and writing until `self` is dropped, and
            // accessible only through it.
            unsafe { std::slice::from_raw_parts_mut(self.0.start().add(GUARD).as_ptr(), LEN) }
        }
    }

    /// Returns a mapping's bytes on huge pages.
    fn huge(maps: &str, start: u64) -> u64 {
        let begin = format!("{start:x}-");
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&begin));
        let line = lines.find(|line| line.starts_with("AnonHugePages:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        kilobytes.unwrap_or(0u64) * 1_024
    }

    #[test]
    fn memory_in_use_is_found_and_keeps_its_content_on_huge_pages() {
        let smaps = || fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let mut region = Region::new();
        let start = region.bytes().as_ptr() as u64;
        let is_found = || mappings(&smaps()).iter().any(|found| found.start == start);
        assert!(!is_found(), "no page is in use");
        for (at, byte) in region.bytes().iter_mut().enumerate() {
            *byte = (at % 251) as u8;
        }
        assert!(is_found(), "all pages are in use");
        let before = huge(&smaps(), start);
        let granted = collapse_heap();
        if granted >= LEN as u64 {
            // The kernel supports the request and moved the whole region.
            let after = huge(&smaps(), start);
            assert!(after >= before.max(LEN as u64 - (2 << 20)), "{after}");
        }
        let mut bytes = region.bytes().iter().enumerate();
        assert!(bytes.all(|(at, byte)| *byte == (at % 251) as u8));
    }
}
