//! From a resource to the changes of its objects: list and watch bytes in, deltas out.

pub mod decode;
