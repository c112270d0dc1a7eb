//! A definition has a plan, or problems with words for them.

#![no_main]

use bellwether::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::definition(data));
