//! A date that is read is the one that `chrono` reads.

#![no_main]

use bellwether::decode::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::date(data));
