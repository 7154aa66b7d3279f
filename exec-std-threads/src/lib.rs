//! steersman-threads
