//! A listing of a store without the keys that are no paths has lost nothing else.

#![no_main]

use bellwether::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::listing(data));
