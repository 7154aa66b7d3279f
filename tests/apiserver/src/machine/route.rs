//! From a path to a resource, a namespace, a name and a subresource.

use crate::resource::Resource;

/// What a path of the API means, before it is known whether such a resource exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) plural: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// The deprecated `/watch/` paths.
    pub(crate) watch: bool,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Objects.
    Resource(Target),
    /// Anything else; the segments.
    Other(Vec<String>),
}

/// Percent-decoding; `None` if the result is not text or an escape is broken.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'%' => {
                let hex = text.get(i + 1..i + 3)?;
                out.push(u8::from_str_radix(hex, 16).ok()?);
                i += 2;
            }
            b'+' if plus_is_space => out.push(b' '),
            b => out.push(b),
        }
        i += 1;
    }
    String::from_utf8(out).ok()
}

/// The parameters of a query, first one wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|p| !p.is_empty()).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name, true)?, decode(value, true)?))
        });
        Self(pairs.collect())
    }

    /// The parameter, empty if absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(n, _)| n == name)
    }

    /// Go's reading of a flag: anything but `false` and `0` is true, even an empty value.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.get(name), "false" | "0")
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

pub(crate) fn parse(path: &str) -> Option<Path> {
    let segments: Vec<String> =
        path.split('/').filter(|s| !s.is_empty()).map(|s| decode(s, false)).collect::<Option<_>>()?;
    let rest = match segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["api", _, _, ..] => 2,
        ["apis", _, _, _, ..] => 3,
        _ => return Some(Path::Other(segments)),
    };
    let mut target = Target { version: segments[rest - 1].clone(), ..Target::default() };
    if rest == 3 {
        target.group.clone_from(&segments[1]);
    }
    let mut parts: Vec<&str> = segments[rest..].iter().map(String::as_str).collect();
    if parts.len() > 1 && parts[0] == "watch" {
        target.watch = true;
        parts.remove(0);
    }
    let (namespace, plural, name, sub): (&str, &str, &str, &[&str]) = match parts.as_slice() {
        ["namespaces", ns, sub @ ("status" | "finalize")] if target.group.is_empty() => {
            (ns, "namespaces", ns, &[*sub])
        }
        ["namespaces", ns, plural] => (ns, plural, "", &[]),
        ["namespaces", ns, plural, name, sub @ ..] => (ns, plural, name, sub),
        // A namespace lies "in" itself; authorisation says so too.
        ["namespaces", ns] => (ns, "namespaces", ns, &[]),
        [plural] => ("", plural, "", &[]),
        [plural, name, sub @ ..] => ("", plural, name, sub),
        [] => return Some(Path::Other(segments)),
    };
    target.namespace = namespace.to_owned();
    target.plural = plural.to_owned();
    target.name = name.to_owned();
    target.subresource = sub.join("/");
    Some(Path::Resource(target))
}

impl Target {
    /// Whether the path fits the resource's scope.
    pub(crate) fn fits(&self, resource: &Resource) -> bool {
        if resource.namespaced() {
            !self.namespace.is_empty() || self.name.is_empty()
        } else {
            self.namespace.is_empty() || resource.of.plural == "namespaces"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> (String, String, String, String, String) {
        match parse(path) {
            Some(Path::Resource(t)) => (t.group, t.namespace, t.plural, t.name, t.subresource),
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths() {
        let s = |a: [&str; 5]| -> (String, String, String, String, String) {
            let [a, b, c, d, e] = a.map(str::to_owned);
            (a, b, c, d, e)
        };
        for (path, wanted) in [
            ("/api/v1/configmaps", ["", "", "configmaps", "", ""]),
            ("/api/v1/namespaces/a/configmaps/b%2Fc", ["", "a", "configmaps", "b/c", ""]),
            ("/api/v1/namespaces", ["", "", "namespaces", "", ""]),
            ("/api/v1/namespaces/a", ["", "a", "namespaces", "a", ""]),
            ("/api/v1/namespaces/a/status", ["", "a", "namespaces", "a", "status"]),
            ("/apis/apps/v1/namespaces/a/deployments/b/status", ["apps", "a", "deployments", "b", "status"]),
            ("/api/v1/nodes/n/proxy/x", ["", "", "nodes", "n", "proxy/x"]),
            ("/api/v1/watch/namespaces/a/pods", ["", "a", "pods", "", ""]),
        ] {
            assert_eq!(target(path), s(wanted), "{path}");
        }
        assert_eq!(
            parse("/apis/apps/v1"),
            Some(Path::Other(vec!["apis".into(), "apps".into(), "v1".into()]))
        );
        assert_eq!(parse("/api/v1/%ff/x"), None);
    }

    #[test]
    fn queries() {
        let q = Query::parse("labelSelector=a%3Db%2Cc+d&watch&limit=5&x=%zz");
        assert_eq!(q.get("labelSelector"), "a=b,c d");
        assert!(q.flag("watch"));
        assert!(!q.flag("nope"));
        assert_eq!(q.get("x"), "");
    }
}
