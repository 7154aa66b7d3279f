//! What happened, as text, if somebody wants it; as one number always.

use std::fmt::{self, Write as _};

use steersman_core::time::Time;

/// Most bytes of text that are kept; a run that goes round in circles has said all by then.
const MOST: usize = 64 * 1024 * 1024;

/// The record of a run. Text is made only when asked for: a run is made again from its seed to read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    text: Option<String>,
    fingerprint: u64,
}

impl Trace {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { text: wanted.then(String::new), fingerprint: 0xcbf2_9ce4_8422_2325 }
    }

    /// One more number that must be the same in every run of this seed (FNV-1a over its bytes).
    pub(crate) fn mark(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.fingerprint = (self.fingerprint ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// A line; its words are put together only if they are wanted.
    pub(crate) fn line(&mut self, now: Time, line: fmt::Arguments<'_>) {
        if let Some(text) = &mut self.text
            && text.len() < MOST
        {
            let (secs, micros) = (now.as_nanos() / 1_000_000_000, now.as_nanos() / 1000 % 1_000_000);
            // A String takes everything.
            let _ = writeln!(text, "{secs:>5}.{micros:06} {line}");
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.text.is_some()
    }

    /// A number that two runs have in common only if the same happened in both.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(crate) fn take(&mut self) -> String {
        self.text.take().unwrap_or_default()
    }
}
