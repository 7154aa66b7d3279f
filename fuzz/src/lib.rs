//! steersman-fuzz
