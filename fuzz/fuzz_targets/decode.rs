//! An answer says what the oracle says that it says.

#![no_main]

use bellwether::harness::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| decode::decode(data));
