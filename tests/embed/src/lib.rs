//! steersman-embed
