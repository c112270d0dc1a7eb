//! An answer says what the oracle says that it says.

#![no_main]

use bellwether::decode::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::decode(data));
