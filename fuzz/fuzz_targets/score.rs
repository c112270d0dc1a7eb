//! A number that is read is the nearest one.

#![no_main]

use bellwether::harness::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| decode::score(data));
