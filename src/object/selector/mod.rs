//! What picks some objects out of many: by their labels, or by their fields.

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;
