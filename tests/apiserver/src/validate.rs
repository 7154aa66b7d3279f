//! Names, labels and other metadata: what is refused, and in which words.

use serde_json::Value;

use crate::status::FieldError;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

fn lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn label_ok(s: &str) -> bool {
    let b = s.as_bytes();
    !b.is_empty()
        && lower_alnum(b[0])
        && lower_alnum(b[b.len() - 1])
        && b.iter().all(|c| lower_alnum(*c) || *c == b'-')
}

/// What is wrong with a DNS subdomain (most object names).
pub(crate) fn subdomain(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some("must be no more than 253 characters".into());
    }
    (!name.split('.').all(label_ok)).then(|| SUBDOMAIN.into())
}

/// What is wrong with a DNS label (namespaces, services).
pub(crate) fn dns_label(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some("must be no more than 63 characters".into());
    }
    (!label_ok(name)).then(|| if subdomain(name).is_none() { "must not contain dots" } else { LABEL }.into())
}

fn word_ok(s: &str) -> bool {
    let b = s.as_bytes();
    !b.is_empty()
        && b[0].is_ascii_alphanumeric()
        && b[b.len() - 1].is_ascii_alphanumeric()
        && b.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

/// What is wrong with a label or annotation key.
pub(crate) fn qualified_name(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            return Some(
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')".into(),
            );
        }
        None => (None, key),
    };
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some("prefix part must be non-empty".into());
        }
        if let Some(problem) = subdomain(prefix) {
            return Some(format!("prefix part {problem}"));
        }
    }
    if name.is_empty() {
        return Some("name part must be non-empty".into());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 characters".into());
    }
    (!word_ok(name)).then(|| NAME_PART.into())
}

/// What is wrong with a label value.
pub(crate) fn label_value(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some("must be no more than 63 characters".into());
    }
    (!value.is_empty() && !word_ok(value)).then(|| LABEL_VALUE.into())
}

/// What is wrong with a key of a ConfigMap or Secret.
pub(crate) fn config_key(key: &str) -> Option<String> {
    if key.len() > 253 {
        return Some("must be no more than 253 characters".into());
    }
    if key == "." {
        return Some("must not be '.'".into());
    }
    if key == ".." {
        return Some("must not be '..'".into());
    }
    if key.starts_with("..") {
        return Some("must not start with '..'".into());
    }
    let ok =
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    (!ok).then(|| CONFIG_KEY.into())
}

/// Everything wrong with `metadata` whatever the kind; `name_check` is the kind's own rule. Finalizers of custom objects may
/// be `plain` words, those of built-in ones need a domain.
pub(crate) fn metadata(
    meta: &Value,
    name_check: fn(&str) -> Option<String>,
    plain: bool,
    errors: &mut Vec<FieldError>,
) {
    let name = meta.get("name").and_then(Value::as_str).unwrap_or("");
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else if let Some(problem) = name_check(name) {
        errors.push(FieldError::invalid_str("metadata.name", name, &problem));
    }
    for (key, value) in meta.get("labels").and_then(Value::as_object).into_iter().flatten() {
        if let Some(problem) = qualified_name(key) {
            errors.push(FieldError::invalid_str("metadata.labels", key, &problem));
        }
        let value = value.as_str().unwrap_or("");
        if let Some(problem) = label_value(value) {
            errors.push(FieldError::invalid_str("metadata.labels", value, &problem));
        }
    }
    let mut total = 0;
    for (key, value) in meta.get("annotations").and_then(Value::as_object).into_iter().flatten() {
        if let Some(problem) = qualified_name(&key.to_ascii_lowercase()) {
            errors.push(FieldError::invalid_str("metadata.annotations", key, &problem));
        }
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > 256 * 1024 {
        errors.push(FieldError {
            reason: "FieldValueTooLong",
            field: "metadata.annotations".into(),
            message: "Too long: may not be more than 262144 bytes".into(),
        });
    }
    for owner in meta.get("ownerReferences").and_then(Value::as_array).into_iter().flatten() {
        for (member, what) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner.get(member).and_then(Value::as_str).unwrap_or("").is_empty() {
                errors.push(FieldError::invalid_str(format!("metadata.ownerReferences.{member}"), "", what));
            }
        }
    }
    one_controller(meta, errors);
    let finalizers: Vec<&str> = meta
        .get("finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|f| f.as_str().unwrap_or(""))
        .collect();
    for finalizer in &finalizers {
        if let Some(problem) = qualified_name(finalizer) {
            errors.push(FieldError::invalid_str("metadata.finalizers", finalizer, &problem));
        }
    }
    for (i, finalizer) in finalizers.iter().enumerate() {
        let known = matches!(*finalizer, "orphan" | "foregroundDeletion" | "kubernetes");
        if !plain && !known && !finalizer.contains('/') {
            errors.push(FieldError::invalid_str(
                format!("metadata.finalizers[{i}]"),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
}

/// An object has one controller at most.
fn one_controller(meta: &Value, errors: &mut Vec<FieldError>) {
    let owners: Vec<&Value> =
        meta.get("ownerReferences").and_then(Value::as_array).into_iter().flatten().collect();
    let mut controllers = owners.iter().filter(|o| o.get("controller") == Some(&Value::Bool(true)));
    let (Some(first), Some(second)) = (controllers.next(), controllers.next()) else { return };
    let title = |o: &Value| {
        let text = |member: &str| o.get(member).and_then(Value::as_str).unwrap_or("").to_owned();
        format!("{}/{}", text("kind"), text("name"))
    };
    // The references are quoted in the order of the fields of Go's type.
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let shown: Vec<String> = owners
        .iter()
        .map(|o| {
            let members = order.iter().filter_map(|m| o.get(*m).map(|v| format!("\"{m}\":{v}")));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
        .collect();
    errors.push(FieldError {
        reason: "FieldValueInvalid",
        field: "metadata.ownerReferences".into(),
        message: format!(
            "Invalid value: [{}]: Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            shown.join(","),
            title(first),
            title(second)
        ),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(subdomain("a-b.c9"), None);
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "é"] {
            assert!(subdomain(bad).is_some(), "{bad}");
        }
        assert!(subdomain(&"a".repeat(254)).is_some());
        assert!(dns_label("a.b").is_some());
        assert_eq!(dns_label("a-b"), None);
    }

    #[test]
    fn keys_and_values() {
        assert_eq!(qualified_name("example.com/My_name.x"), None);
        for bad in ["a b", "/a", "a/", "a/b/c", "A_b!/c", "-x"] {
            assert!(qualified_name(bad).is_some(), "{bad}");
        }
        assert_eq!(label_value(""), None);
        assert!(label_value("c!").is_some());
        assert_eq!(config_key("a.B_c-1"), None);
        assert!(config_key("a b").is_some());
        assert!(config_key("..x").is_some());
    }
}
