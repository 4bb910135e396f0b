//! `plan.json`: a plan as text people can read and programs can parse.
//!
//! The same plan gives the same bytes. A rank is one line, so that thousands of them stay readable and a
//! line-based tool can pick one out.

use super::diff::Diff;
use super::plan::Plan;
use serde_json::Value;
use std::fmt::Write;

/// Columns an object may take to stay on one line.
const WIDTH: usize = 110;

/// The text of `plan.json`, described by `docs/plan.schema.json`.
#[expect(clippy::missing_panics_doc, reason = "a plan always serialises")]
pub fn plan_json(plan: &Plan) -> String {
    let value = serde_json::to_value(plan).expect("a plan has string keys only");
    let mut out = String::new();
    write_value(&mut out, &value, 0, 0);
    out.push('\n');
    out
}

/// The text of a difference of two plans.
#[expect(clippy::missing_panics_doc, reason = "a difference always serialises")]
pub fn diff_json(diff: &Diff) -> String {
    let value = serde_json::to_value(diff).expect("a difference has string keys only");
    format!("{value:#}\n")
}

/// Writes `value`, whose first character lands `column` characters into a line indented by `depth`.
fn write_value(out: &mut String, value: &Value, depth: usize, column: usize) {
    let flat = value.to_string();
    if is_row(value) || column + flat.len() <= WIDTH && !has_objects(value) {
        out.push_str(&spaced(&flat));
        return;
    }
    match value {
        Value::Object(fields) => {
            out.push('{');
            for (i, (key, field)) in fields.iter().enumerate() {
                let key = Value::from(key.as_str()).to_string();
                open_line(out, i, depth + 1);
                let _ = write!(out, "{key}: ");
                write_value(out, field, depth + 1, 2 * (depth + 1) + key.len() + 2);
            }
            close(out, depth, '}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                open_line(out, i, depth + 1);
                write_value(out, item, depth + 1, 2 * (depth + 1));
            }
            close(out, depth, ']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&flat),
    }
}

fn open_line(out: &mut String, index: usize, depth: usize) {
    out.push_str(if index == 0 { "\n" } else { ",\n" });
    out.push_str(&"  ".repeat(depth));
}

fn close(out: &mut String, depth: usize, bracket: char) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(bracket);
}

/// Whether `value` is one row of a long table, kept on one line however wide: a rank, or the ranks of a group.
fn is_row(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key("local_rank"),
        Value::Array(items) => items.iter().all(Value::is_number),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Whether an object lies below `value`.
fn has_objects(value: &Value) -> bool {
    let deeper = |v: &Value| v.is_object() || has_objects(v);
    match value {
        Value::Object(fields) => fields.values().any(deeper),
        Value::Array(items) => items.iter().any(deeper),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Compact JSON with a blank after each `,` and `:` outside strings.
fn spaced(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() + compact.len() / 4);
    let (mut quoted, mut escaped) = (false, false);
    for c in compact.chars() {
        out.push(c);
        if escaped {
            escaped = false;
        } else if quoted && c == '\\' {
            escaped = true;
        } else if c == '"' {
            quoted = !quoted;
        } else if !quoted && matches!(c, ',' | ':') {
            out.push(' ');
        }
    }
    out
}
