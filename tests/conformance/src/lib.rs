//! steersman-tests
