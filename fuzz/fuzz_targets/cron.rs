//! A cron expression that is read is due when it says, and is shown as it was typed.

#![no_main]

use bellwether::harness;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| harness::cron(data));
