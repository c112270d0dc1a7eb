//! A date that is read is the one that `chrono` reads.

#![no_main]

use bellwether::harness::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| decode::date(data));
