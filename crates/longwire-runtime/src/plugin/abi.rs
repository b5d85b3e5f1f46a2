//! C types from `include/longwire_plugin.h`, field by field. The header documents them. A test
//! compiles it and compares sizes and offsets.

use std::ffi::{c_char, c_int, c_void};
use std::marker::{PhantomData, PhantomPinned};

/// `LONGWIRE_PLUGIN_ABI`.
pub const VERSION: u32 = 1;

pub const OK: c_int = 0;
pub const ERROR: c_int = -1;
pub const NEVER: i64 = i64::MAX;
pub const INVALID: i64 = i64::MIN;
pub const UNKNOWN: i64 = -1;

/// Initial value of results before a hook fills them. Plugins never return it.
pub const NO_FATE: u8 = u8::MAX;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub at_ns: i64,
    pub arrival_ns: i64,
    pub bytes: *const u8,
    pub bytes_count: u32,
    pub length: u32,
    pub wire_bits: u64,
    pub queue_packets: u64,
    pub queue_bytes: u64,
}

/// `struct longwire_random`, opaque to plugins.
#[repr(C)]
pub struct Random {
    hidden: [u8; 0],
    not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `struct longwire_parameters`, opaque to plugins.
#[repr(C)]
pub struct Parameters {
    hidden: [u8; 0],
    not_send: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Reads a parameter in one unit.
pub type Read<T> = unsafe extern "C" fn(*const Parameters, *const c_char, *mut T) -> c_int;

#[repr(C)]
#[derive(Debug)]
pub struct Host {
    pub abi: u32,
    pub struct_size: u32,
    pub next_u64: unsafe extern "C" fn(*mut Random) -> u64,
    pub up_to: unsafe extern "C" fn(*mut Random, u64) -> u64,
    pub uniform: unsafe extern "C" fn(*mut Random) -> f64,
    pub chance: unsafe extern "C" fn(*mut Random, f64) -> c_int,
    pub exponential: unsafe extern "C" fn(*mut Random, i64) -> i64,
    pub fail: unsafe extern "C" fn(*const Host, *const c_char) -> c_int,
    pub log: unsafe extern "C" fn(*const Host, *const c_char),
    pub text: unsafe extern "C" fn(*const Parameters, *const c_char) -> *const c_char,
    pub require: unsafe extern "C" fn(*const Parameters, *const c_char) -> c_int,
    pub time: Read<i64>,
    pub rate: Read<u64>,
    pub size: Read<u64>,
    pub probability: Read<f64>,
    pub count: Read<u64>,
    pub real: Read<f64>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    pub struct_size: u32,
    pub reserved: u32,
    pub delay_mean_ns: i64,
    pub delay_least_ns: i64,
    pub rate_mean_bits_per_second: u64,
}

/// A hook that fills an array of results.
pub type Decide<T> =
    unsafe extern "C" fn(*mut c_void, *mut Random, *const Packet, usize, *mut T) -> c_int;

/// A hook that rewrites bytes.
pub type Rewrite =
    unsafe extern "C" fn(*mut c_void, *mut Random, *const Packet, usize, *const *mut u8) -> c_int;

/// The hook that returns when the link is ready.
pub type Ready = unsafe extern "C" fn(*mut c_void, *mut Random, i64, *mut i64) -> c_int;

pub type Create =
    unsafe extern "C" fn(*const Host, *const Parameters, *mut Hints, *mut *mut c_void) -> c_int;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    pub abi: u32,
    pub struct_size: u32,
    pub name: *const c_char,
    pub create: Option<Create>,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub lose: Option<Decide<u8>>,
    pub delay: Option<Decide<i64>>,
    pub ready: Option<Ready>,
    pub depart: Option<Decide<i64>>,
    pub rewrite: Option<Rewrite>,
}

/// Type of the function that a plugin exports as [`ENTRY`].
pub type Entry = unsafe extern "C" fn() -> *const Plugin;
pub const ENTRY: &str = "longwire_plugin";
