//! steersman-smol
