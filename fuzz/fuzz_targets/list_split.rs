//! Feeds `list_split`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steersman_fuzz::list_split::run(data));
