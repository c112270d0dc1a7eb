//! What goes into a body of several tickers comes out as a row or as a rejected record, once.

#![no_main]

use bellwether::decode::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::conserve(data));
