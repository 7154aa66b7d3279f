//! Requests as values: resources, verbs, paths, parameters, patches, and the server's `Status`.

mod answer;
pub mod kinds;
mod params;
mod request;
mod resource;
mod status;
mod typed;
mod written;

pub(crate) use typed::JSON;

pub use crate::wire::http::Method;
pub use answer::{Answer, AnswerError, Deleted, FromObject, List, ListMeta, Raw};
pub use params::{
    DeleteParams, FieldValidation, GetParams, JsonOp, ListParams, Patch, PatchParams, PostParams,
    Preconditions, PropagationPolicy, Selectors, VersionMatch, WatchParams, pointer,
};
pub use request::{Request, Streaming};
pub use resource::{Kind, ResourceType, Scope};
pub use status::{Status, StatusCause, StatusDetails};
pub use typed::Api;
pub use written::{Written, WrittenState};

#[cfg(test)]
mod tests;
