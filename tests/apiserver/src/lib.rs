//! steersman-apiserver
