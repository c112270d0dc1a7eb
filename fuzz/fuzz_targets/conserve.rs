//! What goes into a body of several tickers comes out as a row or as a rejected record, once.

#![no_main]

use bellwether::harness::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| decode::conserve(data));
