//! `plan.json` against its published schema.

use crate::sample_plans;
use parc::emit::plan::{Plan, SCHEMA};
use parc::emit::plan_json;
use serde_json::Value;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../docs/plan.schema.json")).unwrap()
}

/// Where `value` breaks `schema`: the keywords the plan's schema uses, and no others.
fn violations(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().unwrap() {
        let ok = match keyword.as_str() {
            "$ref" => {
                let name = wanted.as_str().unwrap().strip_prefix("#").unwrap();
                violations(root, root.pointer(name).unwrap(), value, at, found);
                true
            }
            "type" => {
                let is = |t: &Value| match t.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    other => panic!("type {other}"),
                };
                wanted.as_array().map_or_else(|| is(wanted), |all| all.iter().any(is))
            }
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|v| v >= wanted.as_f64().unwrap()),
            "required" => wanted.as_array().unwrap().iter().all(|k| value.get(k.as_str().unwrap()).is_some()),
            "properties" => {
                for (key, schema) in wanted.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        violations(root, schema, value, &format!("{at}/{key}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                for (key, field) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|k| k.contains_key(key)) {
                        continue;
                    }
                    match wanted {
                        Value::Bool(false) => found.push(format!("{at}/{key} is not known")),
                        schema => violations(root, schema, field, &format!("{at}/{key}"), found),
                    }
                }
                true
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    violations(root, wanted, item, &format!("{at}/{i}"), found);
                }
                true
            }
            "prefixItems" => {
                for (i, (schema, item)) in wanted.as_array().unwrap().iter().zip(value.as_array().unwrap()).enumerate()
                {
                    violations(root, schema, item, &format!("{at}/{i}"), found);
                }
                true
            }
            "minItems" => value.as_array().is_none_or(|v| v.len() as u64 >= wanted.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|v| v.len() as u64 <= wanted.as_u64().unwrap()),
            "oneOf" => {
                let fits = |s: &&Value| {
                    let mut inner = Vec::new();
                    violations(root, s, value, at, &mut inner);
                    inner.is_empty()
                };
                wanted.as_array().unwrap().iter().filter(fits).count() == 1
            }
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            other => panic!("keyword {other}"),
        };
        if !ok {
            found.push(format!("{at}: {keyword} {wanted}, not {value}"));
        }
    }
}

/// Where a plan breaks the published schema.
pub(crate) fn check(value: &Value) -> Vec<String> {
    let schema = schema();
    let mut found = Vec::new();
    violations(&schema, &schema, value, "", &mut found);
    found
}

fn read(plan: &Plan) -> Value {
    serde_json::from_str(&plan_json(plan)).unwrap()
}

#[test]
fn sample_plans_are_valid() {
    let plans = [sample_plans::llama3_8b(), sample_plans::gpt3()];
    for plan in &plans {
        assert_eq!(check(&read(plan)), Vec::<String>::new());
    }
    let mut odd = sample_plans::llama3_8b();
    odd.layout.recompute =
        parc::emit::plan::RecomputeInfo::Parts(vec![parc::emit::plan::RecomputePart::Region("decoder.mlp".into())]);
    odd.model.decoder = None;
    odd.model.decoder_reason = Some("it has \"quotes\",\nlines: and \u{1f600}".into());
    odd.pipeline.arguments.insert("group".into(), 4);
    odd.layout.pads.push(("V".into(), 128_256, 129_024));
    odd.job.set.push(("tp".into(), "2".into()));
    assert_eq!(check(&read(&odd)), Vec::<String>::new());
    assert_eq!(read(&odd)["model"]["decoder_reason"], odd.model.decoder_reason.unwrap());
}

#[test]
fn the_schema_rejects_what_is_not_a_plan() {
    let good = read(&sample_plans::llama3_8b());
    let breaks: [fn(&mut Value); 8] = [
        |v| v["schema"] = "parc-plan/2".into(),
        |v| drop(v.as_object_mut().unwrap().remove("ranks")),
        |v| v["surprise"] = 1.into(),
        |v| v["ranks"][3]["stage"] = (-1).into(),
        |v| v["layout"]["axes"][0]["role"] = "model".into(),
        |v| v["model"]["decoder"]["layers"] = "32".into(),
        |v| v["time"]["parts"][0] = serde_json::json!(["matmul"]),
        |v| v["layout"]["recompute"] = "some".into(),
    ];
    for (i, change) in breaks.iter().enumerate() {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(!check(&bad).is_empty(), "change {i}");
    }
    assert_eq!(schema()["properties"]["schema"]["const"], SCHEMA);
}

#[test]
fn the_text_is_the_value_and_a_rank_is_a_line() {
    let plan = sample_plans::llama3_405b();
    let text = plan_json(&plan);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), serde_json::to_value(&plan).unwrap());
    assert_eq!(text.lines().filter(|l| l.contains("\"local_rank\"")).count(), 16384);
    assert_eq!(text, plan_json(&plan));
    assert!(text.ends_with("}\n"));
}
