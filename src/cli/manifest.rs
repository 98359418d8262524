//! Manifests: files, directories or stdin, each with one or many YAML or JSON documents.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

use super::kinds;
use super::output::text_at;
use super::session::Session;
use crate::client::Target;
use crate::object::Registry;

/// One document.
#[derive(Clone, Debug)]
pub struct Document {
    /// Where it stands, for messages.
    pub source: String,
    pub target: Target,
    pub value: Value,
}

/// Reads all documents, in the order their kinds depend on each other. Everything that is wrong
/// with them is reported at once.
pub fn read(session: &Session, files: &[String]) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    let mut wrong = Vec::new();
    for file in files {
        for (source, text) in texts(file)? {
            let values = match parse(&text) {
                Ok(values) => values,
                Err(problem) => {
                    wrong.push(format!("{source} {problem}"));
                    continue;
                }
            };
            let many = values.len() > 1;
            for (index, value) in values.into_iter().enumerate() {
                let source = if many { format!("{source} (document {})", index + 1) } else { source.clone() };
                match document(session, source.clone(), value) {
                    Ok(document) => documents.push(document),
                    Err(problem) => wrong.push(format!("{source}: {problem}")),
                }
            }
        }
    }
    if !wrong.is_empty() {
        bail!("{}\nnothing was written", wrong.join("\n"));
    }
    if documents.is_empty() {
        bail!("there are no objects in {}", files.join(", "));
    }
    documents.sort_by_key(|document| rank(&session.registry, document));
    Ok(documents)
}

/// Named files and their text; a directory gives its manifests by name.
fn texts(file: &str) -> anyhow::Result<Vec<(String, String)>> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
        return Ok(vec![("stdin".into(), text)]);
    }
    if file.contains("://") {
        bail!("{file}: this version reads files: fetch it first, as in `curl -fsSL {file} | rl apply -f -`");
    }
    let path = Path::new(file);
    let paths = if path.is_dir() { manifests_in(path)? } else { vec![path.to_owned()] };
    paths.into_iter().map(|path| Ok((path.display().to_string(), read_text(&path)?))).collect()
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn manifests_in(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", dir.display()))?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_file() && matches!(extension, Some("yaml" | "yml" | "json")) {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        bail!("{} holds no .yaml, .yml or .json file", dir.display());
    }
    paths.sort();
    Ok(paths)
}

/// The documents of one text, lists taken apart and empty ones left out.
fn parse(text: &str) -> Result<Vec<Value>, String> {
    let values: Vec<Value> = if text.trim_start().starts_with('{') {
        let documents = serde_json::Deserializer::from_str(text).into_iter();
        documents.collect::<Result<_, _>>().map_err(|error| format!("is no JSON: {error}"))?
    } else {
        // Only `true` and `false`: a label's value may be `y` or `no`.
        let options = serde_saphyr::options! { strict_booleans: true };
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
            let words = serde_saphyr::render_options! {
                formatter: &serde_saphyr::UserMessageFormatter,
                snippets: serde_saphyr::SnippetMode::Off,
            };
            format!("is no YAML: {}", error.render_with_options(words))
        })?
    };
    let flat = values.into_iter().flat_map(|value| match (text_at(&value, "/kind"), value.get("items")) {
        ("List", Some(Value::Array(items))) => items.clone(),
        _ => vec![value],
    });
    Ok(flat.filter(|value| !value.is_null()).collect())
}

fn document(session: &Session, source: String, value: Value) -> Result<Document, String> {
    if !value.is_object() {
        return Err("no object: write apiVersion, kind, metadata and spec".into());
    }
    let (api_version, kind_name) = (text_at(&value, "/apiVersion"), text_at(&value, "/kind"));
    let kind = session
        .registry
        .by_type(api_version, kind_name)
        .ok_or_else(|| unknown_type(&session.registry, api_version, kind_name))?;
    let name = text_at(&value, "/metadata/name");
    if name.is_empty() {
        let generated = value.pointer("/metadata/generateName").is_some();
        return Err(if generated {
            "metadata.generateName: apply finds its objects again by name: write metadata.name".into()
        } else {
            "metadata.name: required".into()
        });
    }
    let own = value.pointer("/metadata/namespace").and_then(Value::as_str).filter(|own| !own.is_empty());
    let namespace = match (own, session.globals.namespace.as_deref()) {
        (Some(own), Some(flag)) if own != flag && kind.namespaced => {
            return Err(format!(
                "metadata.namespace: the manifest says {own:?} and -n says {flag:?}: leave one of them out"
            ));
        }
        (Some(own), _) => own,
        (None, _) => &session.namespace,
    };
    let target = Target::new(kind, namespace, name);
    Ok(Document { source, target, value })
}

fn unknown_type(registry: &Registry, api_version: &str, kind: &str) -> String {
    if api_version.is_empty() || kind.is_empty() {
        return "apiVersion and kind are both required".into();
    }
    if let Some(known) = registry.kinds().iter().find(|known| known.kind.eq_ignore_ascii_case(kind)) {
        format!("write apiVersion: {} and kind: {}", known.api_version(), known.kind)
    } else {
        let known: Vec<&str> = registry.kinds().iter().map(|kind| kind.kind).collect();
        let meant = kinds::nearest(registry, kind)
            .map(|meant| format!("did you mean {}? ", meant.kind))
            .unwrap_or_default();
        format!("no kind {kind:?} in {api_version:?}: {meant}The kinds are {}", known.join(", "))
    }
}

fn rank(registry: &Registry, document: &Document) -> usize {
    let kinds = registry.kinds();
    kinds.iter().position(|kind| std::ptr::eq(*kind, document.target.kind)).unwrap_or(kinds.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let values = parse(text).expect("a readable text");
        values.iter().map(|value| text_at(value, "/kind").to_owned()).collect()
    }

    #[test]
    fn documents_come_as_yaml_json_or_lists_and_empty_ones_are_left_out() {
        assert_eq!(kinds("---\nkind: A\n---\n# nothing\n---\nkind: B\n"), ["A", "B"]);
        assert_eq!(kinds(r#"{"kind":"A"} {"kind":"B"}"#), ["A", "B"]);
        assert_eq!(kinds("kind: List\nitems:\n- kind: A\n- {kind: B}\n"), ["A", "B"]);
    }

    #[test]
    fn a_key_written_twice_is_refused() {
        assert!(parse("kind: A\nkind: B\n").is_err());
    }
}
