//! Capture files, implemented independently of `longwire-capture`: classic pcap, little-endian,
//! with nanosecond timestamps.

/// Lengths of the file header and of a record header.
const HEADER_LEN: usize = 24;
const RECORD_LEN: usize = 16;

/// Returns a capture of frames with this link type; each frame has a time in nanoseconds since
/// 1970.
pub fn pcap<F: AsRef<[u8]>>(link_type: u32, frames: impl IntoIterator<Item = (u64, F)>) -> Vec<u8> {
    let header = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, link_type];
    let mut file = header.map(u32::to_le_bytes).concat();
    for (stamp, frame) in frames {
        let frame = frame.as_ref();
        let (seconds, nanos) = (stamp / 1_000_000_000, stamp % 1_000_000_000);
        let len = frame.len() as u32;
        let words = [seconds as u32, nanos as u32, len, len];
        file.extend(words.map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    file
}

/// Returns the complete records of a capture: times and bytes. Empty if the file has no header yet.
pub fn records(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut records = Vec::new();
    let mut rest = file.get(HEADER_LEN..).unwrap_or_default();
    while let Some((header, behind)) = rest.split_at_checked(RECORD_LEN) {
        let word = |at: usize| {
            header[at..]
                .first_chunk()
                .map_or(0, |word| u32::from_le_bytes(*word))
        };
        let Some((bytes, next)) = behind.split_at_checked(word(8) as usize) else {
            break;
        };
        let stamp = u64::from(word(0)) * 1_000_000_000 + u64::from(word(4));
        records.push((stamp, bytes.to_vec()));
        rest = next;
    }
    records
}
