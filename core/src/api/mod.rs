//! Requests as values: resources, verbs, paths, parameters, patches, and the server's `Status`.

mod resource;
mod status;

pub use resource::{Kind, ResourceType, Scope};
pub use status::{Status, StatusCause, StatusDetails};
