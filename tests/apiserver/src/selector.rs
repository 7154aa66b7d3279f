//! Label and field selectors, with the real server's words for what it cannot parse.

use serde_json::Value;

/// A parsed `labelSelector`; everything in it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    op: Op,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Op {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl Labels {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Parser { tokens: lex(text), at: 0 }.selector().map(Self)
    }

    /// Whether an object with these `metadata.labels` is selected.
    pub(crate) fn matches(&self, labels: Option<&Value>) -> bool {
        self.0.iter().all(|r| {
            let have = labels.and_then(|l| l.get(&r.key)).and_then(Value::as_str);
            let number = || have.and_then(|v| v.parse::<i64>().ok());
            match &r.op {
                Op::Exists => have.is_some(),
                Op::Missing => have.is_none(),
                Op::In(values) => have.is_some_and(|v| values.iter().any(|w| w == v)),
                Op::NotIn(values) => have.is_none_or(|v| values.iter().all(|w| w != v)),
                Op::Greater(n) => number().is_some_and(|v| v > *n),
                Op::Less(n) => number().is_some_and(|v| v < *n),
            }
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(s) => s,
            Self::Sign(s) => s,
        }
    }
}

const SIGNS: [&str; 10] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<", ""];

fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if rest.is_empty() {
            return tokens;
        }
        if let Some(sign) = SIGNS[..9].iter().find(|s| rest.starts_with(**s)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let end =
                rest.find([' ', '\t', '\r', '\n', '=', '!', '(', ')', ',', '>', '<']).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", Token::text)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign)
    }

    fn word(&mut self) -> Option<String> {
        match self.tokens.get(self.at) {
            Some(Token::Word(w)) => {
                self.at += 1;
                Some(w.clone())
            }
            _ => None,
        }
    }

    fn selector(mut self) -> Result<Vec<Requirement>, String> {
        let mut all = Vec::new();
        while self.at < self.tokens.len() {
            if !matches!(self.tokens[self.at], Token::Word(_)) && !self.is_sign("!") {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", self.peek()));
            }
            all.push(self.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?);
            if self.at == self.tokens.len() {
                break;
            }
            if !self.is_sign(",") {
                return Err(format!("found '{}', expected: ',' or 'end of string'", self.peek()));
            }
            self.at += 1;
            if !matches!(self.tokens.get(self.at), Some(Token::Word(_))) && !self.is_sign("!") {
                return Err(format!("found '{}', expected: identifier after ','", self.peek()));
            }
        }
        Ok(all)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let missing = self.is_sign("!");
        if missing {
            self.at += 1;
        }
        let Some(key) = self.word() else {
            return Err(format!("found '{}', expected: identifier", self.peek()));
        };
        if let Some(problem) = crate::validate::qualified_name(&key) {
            return Err(format!("<nil>: Invalid value: {key:?}: {problem}"));
        }
        if missing {
            return Ok(Requirement { key, op: Op::Missing });
        }
        if self.at == self.tokens.len() || self.is_sign(",") {
            return Ok(Requirement { key, op: Op::Exists });
        }
        let operator = self.peek().to_owned();
        self.at += 1;
        let op = match operator.as_str() {
            "in" => Op::In(self.values()?),
            "notin" => Op::NotIn(self.values()?),
            "=" | "==" => Op::In(vec![self.exact()?]),
            "!=" => Op::NotIn(vec![self.exact()?]),
            ">" | "<" => {
                let text = self.exact()?;
                let n = text
                    .parse()
                    .map_err(|_| format!("values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer"))?;
                if operator == ">" { Op::Greater(n) } else { Op::Less(n) }
            }
            other => {
                return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        if let Op::In(values) | Op::NotIn(values) = &op
            && let Some((i, v, problem)) = values
                .iter()
                .enumerate()
                .find_map(|(i, v)| crate::validate::label_value(v).map(|p| (i, v, p)))
        {
            return Err(format!("values[{i}][{key}]: Invalid value: {v:?}: {problem}"));
        }
        Ok(Requirement { key, op })
    }

    fn exact(&mut self) -> Result<String, String> {
        if self.at == self.tokens.len() || self.is_sign(",") {
            return Ok(String::new());
        }
        self.word().ok_or_else(|| format!("found '{}', expected: identifier", self.peek()))
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        if !self.is_sign("(") {
            return Err(format!("found '{}' expected: '('", self.peek()));
        }
        self.at += 1;
        let mut values = Vec::new();
        loop {
            if let Some(w) = self.word() {
                values.push(w);
            } else if self.is_sign(",") || self.is_sign(")") {
                values.push(String::new());
            } else {
                return Err(format!("found '{}', expected: ',', ')' or identifier", self.peek()));
            }
            if self.is_sign(")") {
                self.at += 1;
                values.sort();
                values.dedup();
                return Ok(values);
            }
            if !self.is_sign(",") {
                return Err(format!("found '{}', expected: ',' or ')'", self.peek()));
            }
            self.at += 1;
        }
    }
}

/// A parsed `fieldSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<FieldTerm>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTerm {
    path: String,
    value: String,
    equal: bool,
}

impl Fields {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses; `known` tells whether a resource can be selected by a field, or why not.
    pub(crate) fn parse(text: &str, known: impl Fn(&str) -> Result<(), String>) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let bad = || format!("invalid selector: '{text}'; can't understand '{part}'");
            let at = part.find(['=', '!']).ok_or_else(bad)?;
            let (path, rest) = part.split_at(at);
            let (equal, value) = if let Some(v) = rest.strip_prefix("!=") {
                (false, v)
            } else if let Some(v) = rest.strip_prefix("==") {
                (true, v)
            } else {
                (true, rest.strip_prefix('=').ok_or_else(bad)?)
            };
            known(path)?;
            terms.push(FieldTerm { path: path.to_owned(), value: value.to_owned(), equal });
        }
        Ok(Self(terms))
    }

    /// `metadata.name` if exactly one name is asked for.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.iter().find(|t| t.equal && t.path == "metadata.name").map(|t| t.value.as_str())
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|t| (field(object, &t.path) == t.value) == t.equal)
    }
}

/// The text of a field; missing is empty (`false` for the one boolean that can be selected by).
fn field(object: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(object, |v, name| v.get(name));
    match found {
        Some(Value::String(s)) => s.clone(),
        Some(Value::Bool(b)) => b.to_string(),
        Some(Value::Number(n)) => n.to_string(),
        _ if matches!(path, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ if path == "source" => {
            let component = object.get("source").and_then(|s| s.get("component")).and_then(Value::as_str);
            component
                .or_else(|| object.get("reportingComponent").and_then(Value::as_str))
                .unwrap_or("")
                .to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn label_selectors() {
        let labels = json!({"app":"web","tier":"front","n":"5"});
        for (text, wanted) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier", true),
            ("app!=web", false),
            ("other!=web", true),
            ("!app", false),
            ("!other", true),
            ("app in (web, db)", true),
            ("app notin (web,db)", false),
            ("other notin (x)", true),
            ("n>4", true),
            ("n<5", false),
            ("app=", false),
            ("a/b=c", false),
        ] {
            assert_eq!(Labels::parse(text).unwrap().matches(Some(&labels)), wanted, "{text}");
        }
        assert!(!Labels::parse("app").unwrap().matches(None));
    }

    #[test]
    fn label_selector_errors_are_the_real_ones() {
        for (text, wanted) in [
            ("x===1", "unable to parse requirement: found '=', expected: identifier"),
            ("a=b,", "found '', expected: identifier after ','"),
            ("a=!", "unable to parse requirement: found '!', expected: identifier"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ] {
            assert_eq!(Labels::parse(text).unwrap_err(), wanted, "{text}");
        }
        assert!(Labels::parse("a in (").is_err());
        assert!(Labels::parse("a b c").is_err());
    }

    #[test]
    fn field_selectors() {
        let pod = json!({"metadata":{"name":"p"},"status":{"phase":"Running"}});
        let ok = |_: &str| Ok(());
        assert!(Fields::parse("metadata.name=p,status.phase!=Failed", ok).unwrap().matches(&pod));
        assert!(!Fields::parse("metadata.name==q", ok).unwrap().matches(&pod));
        assert!(Fields::parse("spec.nodeName=", ok).unwrap().matches(&pod));
        assert_eq!(Fields::parse("metadata.name=p", ok).unwrap().name(), Some("p"));
        assert_eq!(Fields::parse("foo", ok).unwrap_err(), "invalid selector: 'foo'; can't understand 'foo'");
    }
}
