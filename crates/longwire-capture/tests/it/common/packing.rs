//! Compression by libraries and by common tools.

use std::io::Write;
use std::process::{Command, Stdio};

use longwire_testbed::support::skip;

use flate2::Compression;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, FrameEncoder, FrameInfo};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Returns the bytes compressed as one member or frame in each format.
pub fn all(bytes: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    [
        ("gzip", gzip(bytes)),
        ("zstd", compress_to_vec(bytes, CompressionLevel::Fastest)),
        ("lz4", lz4(bytes)),
    ]
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses to linked blocks of 64 KiB, with a checksum.
pub fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = FrameInfo::new()
        .block_mode(BlockMode::Linked)
        .block_size(lz4_flex::frame::BlockSize::Max64KB)
        .content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns the bytes as compressed by a tool. Skips the test if the tool is not installed.
pub fn by_tool(tool: &str, arguments: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let child = Command::new(tool)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(_) => return skip(format!("{tool} is not installed")),
    };
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{tool} {arguments:?}");
    Some(output.stdout)
}
