//! `parc import hf`: published configurations come out as models with the published number of parameters, and nothing
//! that is no configuration does harm.

use crate::files::root;
use crate::models_all::{number, shown_in};
use parc::diagnostics::{Code, Diagnostic};
use parc::import;
use parc::source::Sources;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The program of a configuration, and what was said.
fn imported(text: &str, stem: &str) -> (Option<String>, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let file = sources.add(format!("{stem}.json"), text.to_string(), false);
    let imported = import::hf(&sources, file, stem);
    (imported.text, imported.said)
}

fn codes(text: &str) -> Vec<Code> {
    imported(text, "x").1.iter().map(|d| d.code).collect()
}

/// The name a program gives its model.
fn name(program: &str) -> &str {
    let line = program.lines().find(|l| l.starts_with("let ")).unwrap();
    line.strip_prefix("let ").unwrap().split(' ').next().unwrap()
}

/// The folder of configurations, and the file of counts.
fn data() -> (PathBuf, PathBuf) {
    let or = |variable: &str, path: &str| std::env::var_os(variable).map_or_else(|| root().join(path), PathBuf::from);
    (or("PARC_HF_CONFIGS", "tests/data/hf_configs"), or("PARC_HF_EXPECTATIONS", "tests/data/hf_expectations.json"))
}

#[test]
fn published_configurations_have_the_published_number_of_parameters() {
    let (folder, expectations) = data();
    let expected: serde_json::Value = serde_json::from_str(&fs::read_to_string(expectations).unwrap()).unwrap();
    // The whole table of models holds the expectations under a name.
    let expected = expected.get("hf_config_expectations").unwrap_or(&expected).as_object().unwrap();
    let elsewhere = std::env::var_os("PARC_HF_CONFIGS").is_some();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (file, facts) in expected {
        let Ok(text) = fs::read_to_string(folder.join(file)) else { continue };
        seen += 1;
        let (program, said) = imported(&text, file.trim_end_matches(".json"));
        let Some(program) = program else {
            wrong.push(format!("{file}: {said:?}"));
            continue;
        };
        if !said.is_empty() && !elsewhere {
            wrong.push(format!("{file}: {said:?}"));
        }
        let params = facts["expected_params"].as_u64();
        match shown_in(&program, name(&program)) {
            Ok(s) if number(&s, "parameters") == params => {}
            Ok(s) => wrong.push(format!("{file}: {:?}, expected {params:?}\n{program}", number(&s, "parameters"))),
            Err(said) => wrong.push(format!("{file}: {said}\n{program}")),
        }
    }
    assert!(seen >= 30 || elsewhere, "only {seen} configurations");
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
}

const LLAMA: &str = r#""model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "rope_theta": 500000.0"#;

#[test]
fn a_common_model_is_one_line_of_its_family() {
    let (program, said) = imported(&format!("{{{LLAMA}}}"), "llama-3.1-8b");
    assert_eq!(said, []);
    let wanted = "edition 1
//! Imported from a Hugging Face configuration of type `llama`.

let Llama_3_1_8b = Llama(layers = 32, hidden = 4096, heads = 32, kv_heads = 8, ffn = 14336, vocab = 128256,
                         rope_base = 500000.0)
";
    assert_eq!(program.unwrap(), wanted);
}

#[test]
fn names_are_names_of_the_language() {
    for (stem, wanted) in [
        ("model", "Model"),
        ("2b", "Model_2b"),
        ("Llama", "Model_Llama"),
        ("..", "Model_"),
        ("über-8b", "Ber_8b"),
        ("x\n`$(rm)`\"", "X____rm"),
    ] {
        let program = imported(&format!("{{{LLAMA}}}"), stem).0.unwrap();
        assert_eq!(name(&program), wanted, "{stem}");
        assert!(shown_in(&program, wanted).is_ok(), "{stem}");
    }
}

#[test]
fn what_is_not_read_is_said_and_what_is_unknown_is_refused() {
    assert_eq!(codes(&format!("{{{LLAMA}, \"new_thing\": 7}}")), [Code::ImportIgnored]);
    assert_eq!(codes(&format!("{{{LLAMA}, \"torch_dtype\": \"bfloat16\", \"new_thing\": null}}")), []);
    assert_eq!(codes(r#"{"model_type": "perceiver"}"#), [Code::ImportUnknown]);
    assert_eq!(codes(&format!("{{{LLAMA}, \"hidden_act\": \"mish\"}}")), [Code::ImportUnknown]);
    let unknown = imported(r#"{"model_type": "perceiver"}"#, "x").1;
    assert!(unknown[0].message.contains("`perceiver`") && unknown[0].notes[0].contains("qwen3_moe"));
}

#[test]
fn what_is_wrong_is_said_where_it_stands() {
    let with = |old: &str, new: &str| format!("{{{}}}", LLAMA.replace(old, new));
    for (text, part) in [
        (String::new(), "a value"),
        ("[]".into(), "`model_type`"),
        ("{}".into(), "`model_type`"),
        (r#"{"model_type": 7}"#.into(), "`model_type` is a number"),
        (with("\"hidden_size\": 4096, ", ""), "`hidden_size` is missing"),
        (with("4096", "\"4096\""), "`hidden_size` is text"),
        (with("4096", "-4096"), "-4096"),
        (with("4096", "4096.5"), "4096.5"),
        (with("4096", "0"), "from 1"),
        (with("4096", "1e400"), "1e400"),
        (with("4096", "99999999999999999999999999"), "999999"),
        (with("4096", "NaN"), "not JSON"),
        (with("4096", "null"), "missing"),
        (with("4096", "[4096]"), "a list"),
        (with("4096", "4095"), "a divisor of 4095"),
        (with("500000.0", "1e300"), "1e300"),
        (with("\"num_hidden_layers\": 32", "\"num_hidden_layers\": 32, \"num_hidden_layers\": 31"), "twice"),
    ] {
        let (program, said) = imported(&text, "x");
        assert_eq!((program, said.len()), (None, 1), "{text}");
        assert_eq!(said[0].code, Code::ImportMalformed, "{text}");
        assert!(said[0].message.contains(part) || said[0].primary.text.contains(part), "{text}: {}", said[0].message);
        assert!(said[0].primary.span.end as usize <= text.len());
    }
}

#[test]
fn no_text_does_harm() {
    // Every configuration cut off, with a byte changed, and nested in itself.
    let folder = root().join("tests/data/hf_configs");
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        texts.insert(path.display().to_string(), fs::read_to_string(&path).unwrap());
    }
    for text in texts.values() {
        for i in (0..text.len()).step_by(61) {
            let Some(head) = text.get(..i) else { continue };
            imported(head, "x");
            for with in ["9", "\"", "{", "-", "null", "\u{1f600}"] {
                let Some(rest) = text.get(i + 1..) else { continue };
                imported(&format!("{head}{with}{rest}"), "x");
            }
        }
    }
    for text in ["[".repeat(1 << 20), "{\"a\":".repeat(1 << 18), format!("\"{}\"", "\\u0041".repeat(1 << 16))] {
        assert!(imported(&text, "x").0.is_none());
    }
}
