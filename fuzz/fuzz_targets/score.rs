//! A number that is read is the nearest one.

#![no_main]

use bellwether::decode::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::score(data));
