//! The half of a client that is left when somebody else sends its requests.

use super::call::one_line;
use super::{Error, ErrorKind};
use crate::api::{Answer, AnswerError, Raw};

/// Reads what came of a request, `what` it was and who was asked for errors, as the answer that was wanted: a refusal
/// may mean something (`Option` makes "not found" a `None`), and bytes may turn out to be something else.
///
/// # Errors
/// The one that came, or why the bytes are no `R`.
///
/// ```
/// use steersman_core::api::{Raw, kinds::ConfigMap};
/// use steersman_core::client::read_answer;
/// let bytes = Raw(br#"{"kind":"ConfigMap","metadata":{"name":"a"}}"#.to_vec());
/// let map: ConfigMap = read_answer(Ok(bytes), "get configmaps n/a", "kube:6443").unwrap();
/// assert_eq!(map.metadata.name, "a");
/// ```
pub fn read_answer<R: Answer>(answered: Result<Raw, Error>, what: &str, address: &str) -> Result<R, Error> {
    match answered {
        Ok(raw) => raw.read().map_err(|e| match e {
            AnswerError::Status(status) => Error::new(ErrorKind::Api(*status), what, address),
            AnswerError::Bad(e) => Error::new(ErrorKind::Decode(one_line(&e)), what, address),
        }),
        Err(e) => match e.status().and_then(R::refused) {
            Some(answer) => Ok(answer),
            None => Err(e),
        },
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::api::Status;
    use crate::api::kinds::ConfigMap;

    #[test]
    fn what_came_is_read_as_a_call_reads_it() {
        let mut status = Status::failure(404, "NotFound", "configmaps \"a\" not found");
        status.details = Some(crate::api::StatusDetails {
            name: "a".into(),
            kind: "configmaps".into(),
            ..Default::default()
        });
        let gone = Error::new(ErrorKind::Api(status), "get", "kube");
        assert_eq!(read_answer::<Option<ConfigMap>>(Err(gone.clone()), "get", "kube"), Ok(None));
        assert_eq!(read_answer::<ConfigMap>(Err(gone.clone()), "get", "kube"), Err(gone));
        let page =
            read_answer::<ConfigMap>(Ok(Raw(b"<html>".to_vec())), "get configmaps n/a", "kube").unwrap_err();
        assert!(matches!(page.kind(), ErrorKind::Decode(_)), "{page}");
        assert!(page.to_string().starts_with("get configmaps n/a: kube: "), "{page}");
    }
}
