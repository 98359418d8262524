//! kubectl's JSONPath templates: text, `{.a.b[*].c}`, `{"\n"}` and `{range …}…{end}`.
//!
//! kubectl's paths differ from RFC 9535 in small ways: the `$` may be left out, a dot in a key is
//! written `\.`, and keys may hold dashes and slashes. Each path is rewritten to the RFC's form
//! and given to `serde_json_path`.

use std::str::FromStr;

use serde_json::Value;

/// A template.
#[derive(Clone, Debug)]
pub struct JsonPath(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Path(serde_json_path::JsonPath),
    Range(serde_json_path::JsonPath, Vec<Part>),
}

impl FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // As `kubectl wait` does: the braces may be left out of a lone path.
        if !text.contains('{') && text.starts_with(['.', '$', '[']) {
            return Ok(Self(vec![Part::Path(path(text)?)]));
        }
        let mut pieces = pieces(text)?.into_iter();
        let parts = parts(&mut pieces, false)?;
        Ok(Self(parts))
    }
}

impl JsonPath {
    /// The template filled in from `value`. What is not there is empty, as with kubectl.
    #[must_use]
    pub fn render(&self, value: &Value) -> String {
        let mut out = String::new();
        render(&self.0, value, &mut out);
        out
    }
}

fn render(parts: &[Part], value: &Value, out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Path(path) => {
                let found: Vec<String> = path.query(value).all().into_iter().map(plain).collect();
                out.push_str(&found.join(" "));
            }
            Part::Range(path, body) => {
                for item in path.query(value).all() {
                    render(body, item, out);
                }
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A template cut at its braces.
enum Piece {
    Text(String),
    Expression(String),
}

fn pieces(template: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        pieces.push(Piece::Text(rest[..open].to_owned()));
        let inside = &rest[open + 1..];
        let close = closing_brace(inside).ok_or_else(|| format!("a brace in {template:?} is not closed"))?;
        pieces.push(Piece::Expression(inside[..close].trim().to_owned()));
        rest = &inside[close + 1..];
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

/// The first `}` that is not inside quotes.
fn closing_brace(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '}') => return Some(at),
            (Some(_) | None, _) => {}
        }
    }
    None
}

fn parts(pieces: &mut impl Iterator<Item = Piece>, in_range: bool) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(text) if text.is_empty() => {}
            Piece::Text(text) => parts.push(Part::Text(text)),
            Piece::Expression(expression) if expression == "end" => {
                return if in_range { Ok(parts) } else { Err("{end} without a {range …}".into()) };
            }
            Piece::Expression(expression) => match expression.strip_prefix("range ") {
                Some(over) => {
                    let over = path(over.trim())?;
                    parts.push(Part::Range(over, self::parts(pieces, true)?));
                }
                None => parts.push(expression_part(&expression)?),
            },
        }
    }
    if in_range { Err("{range …} without an {end}".into()) } else { Ok(parts) }
}

fn expression_part(expression: &str) -> Result<Part, String> {
    if let Some(text) = quoted(expression) {
        return Ok(Part::Text(text));
    }
    Ok(Part::Path(path(expression)?))
}

/// The text of `"…"` or `'…'`, with `\n`, `\t` and escaped quotes.
fn quoted(expression: &str) -> Option<String> {
    let quote = expression.chars().next().filter(|character| matches!(character, '"' | '\''))?;
    let inside = expression.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut text = String::new();
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
    Some(text)
}

fn path(kubectl: &str) -> Result<serde_json_path::JsonPath, String> {
    serde_json_path::JsonPath::parse(&standard(kubectl))
        .map_err(|error| format!("{kubectl:?} is not a JSONPath: {error}"))
}

/// kubectl's path in the words of RFC 9535.
fn standard(kubectl: &str) -> String {
    let mut out = String::from("$");
    let mut rest = kubectl.strip_prefix(['$', '@']).unwrap_or(kubectl);
    // `{metadata.name}` means `{.metadata.name}`.
    let lead = if rest.is_empty() || rest.starts_with(['.', '[']) { "" } else { "." };
    let dotted = format!("{lead}{rest}");
    rest = &dotted;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '[' => {
                let end = closing_bracket(rest).unwrap_or(rest.len());
                out.push_str(&rest[..end]);
                &rest[end..]
            }
            '.' if rest.starts_with("..") => {
                out.push_str("..");
                child(&rest[2..], &mut out)
            }
            '.' => child(&rest[1..], &mut out),
            _ => child(rest, &mut out),
        };
    }
    out
}

/// Takes one dotted key and writes it as `['key']`, which may hold any character.
fn child<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let mut key = String::new();
    let mut characters = rest.char_indices();
    let mut end = rest.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => key.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => {
                end = at;
                break;
            }
            other => key.push(other),
        }
    }
    match key.as_str() {
        "" => {}
        "*" => out.push_str("[*]"),
        key => out.push_str(&format!("['{}']", key.replace('\'', "\\'"))),
    }
    &rest[end..]
}

/// The end of the bracket that opens `text`, which may hold quotes and brackets itself.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            (Some(_) | None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(template: &str) -> String {
        let value = json!({
            "metadata": {"name": "p", "labels": {"app.kubernetes.io/name": "x", "a-b": "y"}},
            "status": {"phase": "Ready", "n": 3, "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "Bound", "status": "False"}]},
            "items": [{"metadata": {"name": "one"}}, {"metadata": {"name": "two"}}],
        });
        template.parse::<JsonPath>().expect("a valid template").render(&value)
    }

    #[test]
    fn a_template_reads_as_kubectl_reads_it() {
        assert_eq!(rendered("{.status.phase}"), "Ready");
        assert_eq!(rendered("{.status.n}"), "3");
        assert_eq!(rendered("{$.metadata.name}"), "p");
        assert_eq!(rendered("{metadata.name}"), "p");
        assert_eq!(rendered("{.items[*].metadata.name}"), "one two");
        assert_eq!(rendered("{.items[0].metadata.name}"), "one");
        assert_eq!(rendered("{.items[-1:].metadata.name}"), "two");
        assert_eq!(rendered("{..name}"), "p one two");
        assert_eq!(rendered(r#"{.status.conditions[?(@.type=="Bound")].status}"#), "False");
        assert_eq!(rendered("{.status.conditions[?(@.type=='Ready')].status}"), "True");
        assert_eq!(rendered(r"{.metadata.labels.app\.kubernetes\.io/name}"), "x");
        assert_eq!(rendered("{.metadata.labels['a-b']}"), "y");
        assert_eq!(rendered("{.metadata.labels.a-b}"), "y");
        assert_eq!(rendered("{.nothing.here}"), "");
        assert_eq!(rendered("name={.metadata.name}{\"\\n\"}"), "name=p\n");
        assert_eq!(rendered("{range .items[*]}{.metadata.name}{';'}{end}"), "one;two;");
        assert_eq!(rendered(".status.phase"), "Ready");
        assert_eq!(rendered("{.metadata.labels}"), r#"{"app.kubernetes.io/name":"x","a-b":"y"}"#);
    }

    #[test]
    fn a_broken_template_says_where() {
        let wrong = |template: &str| template.parse::<JsonPath>().expect_err("not a template");
        assert_eq!(wrong("{.a"), "a brace in \"{.a\" is not closed");
        assert_eq!(wrong("{range .a[*]}x"), "{range …} without an {end}");
        assert_eq!(wrong("{end}"), "{end} without a {range …}");
        assert!(wrong("{.a[}").starts_with("\".a[\" is not a JSONPath"));
    }
}
