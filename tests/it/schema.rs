//! The schema is one table that everything reads: it has to be whole.

use parc::hir::schema::{RENAMED, SECTIONS, TYPES, block_fields, type_of};
use std::collections::BTreeSet;

#[test]
fn every_field_is_documented_and_of_a_known_type() {
    let mut words = BTreeSet::new();
    for section in SECTIONS {
        assert!(words.insert(section.word), "`{}` is there twice", section.word);
        assert!(!section.doc.is_empty());
        let mut names = BTreeSet::new();
        for field in section.fields {
            let of = format!("`{}` of `{}`", field.name, section.word);
            assert!(names.insert(field.name), "{of} is there twice");
            assert!(!field.doc.is_empty() && !field.doc.ends_with('.'), "{of}: {:?}", field.doc);
            assert!(type_of(field.ty).is_some(), "{of} is of no known type: {}", field.ty);
        }
    }
}

#[test]
fn every_type_is_used_and_said_once() {
    let used: BTreeSet<&str> = SECTIONS.iter().flat_map(|s| s.fields).map(|f| f.ty).collect();
    let mut seen = BTreeSet::new();
    for t in TYPES {
        assert!(seen.insert(t.name), "`{}` is there twice", t.name);
        assert!(!t.doc.is_empty());
    }
    let idle: Vec<_> = seen.difference(&used).collect();
    assert!(idle.iter().all(|t| ["Real", "Link", "Energy"].contains(*t)), "types of no field: {idle:?}");
}

#[test]
fn renamed_fields_lead_to_fields() {
    for r in RENAMED {
        let fields = block_fields(r.of).expect("a section of the schema");
        assert!(fields.iter().any(|f| f.name == r.new), "`{}` of `{}`", r.new, r.of);
        assert!(fields.iter().all(|f| f.name != r.old), "`{}` of `{}` exists", r.old, r.of);
    }
}
