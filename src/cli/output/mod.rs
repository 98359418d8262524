//! How objects are printed: `-o`.

pub mod age;
pub mod jsonpath;
pub mod table;

use std::str::FromStr;

use serde_json::{Value, json};

use self::jsonpath::JsonPath;
use super::console::Console;
use crate::object::Kind;

/// What `-o` asks for.
#[derive(Clone, Debug, Default)]
pub enum Format {
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
    /// `kind/name`, one a line.
    Name,
    JsonPath(JsonPath),
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "table" => Ok(Self::Table),
            "wide" => Ok(Self::Wide),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "name" => Ok(Self::Name),
            _ => match text.strip_prefix("jsonpath=") {
                Some(path) => Ok(Self::JsonPath(path.parse()?)),
                None => Err("write table, wide, json, yaml, name or jsonpath=TEMPLATE".into()),
            },
        }
    }
}

/// Whether objects are one that was asked for by name, or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    One,
    List,
}

/// Prints objects for programs. Tables are the caller's, who knows the columns.
pub fn print_values(
    console: &Console,
    format: &Format,
    shape: Shape,
    items: &[(&Kind, Value)],
) -> anyhow::Result<()> {
    match format {
        Format::Table | Format::Wide => unreachable!("tables are printed by their columns"),
        Format::Name => {
            for (kind, object) in items {
                console.print(format_args!("{}/{}", kind.singular, name_of(object)))?;
            }
        }
        Format::Json => console.print(serde_json::to_string_pretty(&whole(shape, items))?)?,
        Format::Yaml => console.print_raw(&yaml(&whole(shape, items))?)?,
        Format::JsonPath(path) => console.print_raw(&path.render(&whole(shape, items)))?,
    }
    Ok(())
}

/// One value as YAML, ending in a line's end.
pub fn yaml(value: &Value) -> anyhow::Result<String> {
    // A long line, such as a key, stays one line: it is there to be copied.
    let text = serde_saphyr::to_string_with_options(
        value,
        serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX },
    )?;
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

/// `metadata.name`.
pub fn name_of(object: &Value) -> &str {
    text_at(object, "/metadata/name")
}

/// The text at a JSON pointer, or nothing.
pub fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn whole(shape: Shape, items: &[(&Kind, Value)]) -> Value {
    match (shape, items) {
        (Shape::One, [(_, object)]) => object.clone(),
        (Shape::One | Shape::List, items) => json!({
            "apiVersion": "v1",
            "kind": "List",
            "metadata": {"resourceVersion": ""},
            "items": items.iter().map(|(_, object)| object).collect::<Vec<_>>(),
        }),
    }
}
