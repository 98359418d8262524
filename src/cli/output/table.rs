//! Tables as kubectl prints them: upper-case heads, three spaces between columns, no lines.

use serde_json::Value;

use super::age;
use super::name_of;
use crate::object::{Column, Kind, Time};

/// What is shown where an object has no value.
const NONE: &str = "<none>";

/// A column of text and its rows.
#[derive(Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// What earlier rows of a followed table were printed with.
    widths: Vec<usize>,
}

impl Table {
    /// A table with these heads.
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { head: head.into_iter().map(|text| text.into().to_uppercase()).collect(), ..Self::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines, heads first.
    pub fn lines(&mut self) -> Vec<String> {
        self.fit();
        let head = line(&self.head, &self.widths);
        std::iter::once(head).chain(self.take_rows()).collect()
    }

    /// The lines of the rows added since the last call, as wide as those before or wider.
    pub fn take_rows(&mut self) -> Vec<String> {
        self.fit();
        std::mem::take(&mut self.rows).iter().map(|row| line(row, &self.widths)).collect()
    }

    fn fit(&mut self) {
        self.widths.resize(self.head.len(), 0);
        for row in std::iter::once(&self.head).chain(&self.rows) {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:width$}"));
    padded.collect::<Vec<_>>().join("   ").trim_end().to_owned()
}

/// Which columns are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    Usual,
    Wide,
}

/// Whether rows say their namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    One,
    All,
}

/// A table of one kind's objects.
pub struct KindTable {
    columns: Vec<&'static Column>,
    namespaces: Namespaces,
    /// `kind/` before each name, where several kinds are printed.
    prefix: String,
    pub table: Table,
}

impl KindTable {
    /// An empty table with the kind's columns.
    pub fn new(kind: &'static Kind, breadth: Breadth, namespaces: Namespaces, prefix: String) -> Self {
        let namespaces = if kind.namespaced { namespaces } else { Namespaces::One };
        let columns: Vec<&'static Column> =
            kind.columns.iter().filter(|column| column.priority == 0 || breadth == Breadth::Wide).collect();
        let place = (namespaces == Namespaces::All).then_some("namespace");
        let head = place.into_iter().chain(["name"]).chain(columns.iter().map(|column| column.name));
        Self { table: Table::new(head), columns, namespaces, prefix }
    }

    /// Adds an object's row.
    pub fn add(&mut self, object: &Value, now: Time) {
        let place = (self.namespaces == Namespaces::All)
            .then(|| super::text_at(object, "/metadata/namespace").to_owned());
        let name = format!("{}{}", self.prefix, name_of(object));
        let cells = self.columns.iter().map(|column| cell(column, object, now));
        let row: Vec<String> = place.into_iter().chain([name]).chain(cells).collect();
        self.table.row(row);
    }
}

fn cell(column: &Column, object: &Value, now: Time) -> String {
    let value = column.value(object);
    if column.r#type == "date" {
        return value
            .as_str()
            .and_then(|text| Time::parse(text).ok())
            .map_or_else(|| NONE.to_owned(), |time| age::relative(time, now));
    }
    match value {
        Value::Null => NONE.to_owned(),
        Value::String(text) if text.is_empty() => NONE.to_owned(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_with_text() {
        let mut table = Table::new(["name", "phase"]);
        table.row(["a", "Ready"]);
        table.row(["agents-linux", ""]);
        assert_eq!(table.lines(), ["NAME           PHASE", "a              Ready", "agents-linux"]);
        table.row(["b", "Pending"]);
        assert_eq!(table.take_rows(), ["b              Pending"]);
    }
}
