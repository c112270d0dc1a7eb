//! A body is cut into the pieces that `serde_json` cuts it into.

#![no_main]

use bellwether::decode::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::scan(data));
