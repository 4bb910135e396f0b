//! Values as Python literals.

use serde_json::Value;

/// A value as Python writes it; lists of lists or of objects one item a line.
pub(super) fn literal(value: &Value, indent: usize) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Array(items) if items.iter().any(|i| i.is_array() || i.is_object()) => {
            let pad = " ".repeat(indent);
            let row = |all: String, i| all + &pad + "    " + &literal(i, indent + 4) + ",\n";
            let rows = items.iter().fold(String::new(), row);
            format!("[\n{rows}{pad}]")
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(|i| literal(i, indent)).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value)| format!("{}: {}", Value::from(String::clone(key)), literal(value, indent));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        // Numbers and strings are written as in JSON.
        Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
