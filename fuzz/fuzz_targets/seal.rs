//! A seal that is read says the same once it is written again.

#![no_main]

use bellwether::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::seal(data));
