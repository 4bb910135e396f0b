//! Devices, links and clusters of the standard library, against published figures.

use crate::files::{root, text};
use parc::diagnostics::{Sink, render};
use parc::driver;
use parc::emit::show;
use parc::hir::Entry;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources};
use serde_json::Value;
use std::fmt::Write as _;

/// What `parc show` says of every expression, in order.
fn shown(expressions: &[String]) -> Vec<Value> {
    let lets = expressions.iter().enumerate().map(|(i, e)| format!("let shown_{i} = {e}\n"));
    let source: String = std::iter::once("edition 1\n".to_owned()).chain(lets).collect();
    let world = MemoryWorld::new([("main.par", source)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let root = RootFile { shown: "main.par".into(), path: "main.par".into() };
    let program = driver::front(&mut sources, &world, &[root], &mut sink);
    let ids: Vec<_> = program.entries(program.roots[0]).filter(|(_, e)| matches!(e, Entry::Let(_))).collect();
    let all = ids.iter().map(|(id, entry)| show::show(&program, &sources, *id, entry.name().span, &mut sink));
    let all: Vec<_> = all.collect();
    let said = sink.finish();
    assert!(said.is_empty(), "{}", render::short(&said, &sources));
    all.into_iter().map(|s| serde_json::from_str(&s.expect("no diagnostic").json()).unwrap()).collect()
}

/// The text of a row.
fn row<'a>(shown: &'a Value, name: &str) -> Option<&'a str> {
    shown["rows"].as_array()?.iter().find(|r| r[0] == name)?[1].as_str()
}

/// A number with its unit, in base units.
fn number(text: &str) -> f64 {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let number: f64 = number.replace(',', "").parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let prefix = unit.chars().next().filter(|_| unit.trim_end_matches("/s").len() > 1 && !unit.starts_with("FLOP"));
    let binary = unit.contains("iB");
    let power = match prefix {
        Some('k' | 'K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some('P') => 5,
        Some('E') => 6,
        _ => 0,
    };
    number * if binary { 1024_f64 } else { 1000.0 }.powi(power)
}

/// The rate of a dtype in a peak record, the fp32 accumulator's where several are named.
fn peak(record: &str, dtype: &str) -> Option<f64> {
    let (_, rest) = record.split_once(&format!("{dtype} = "))?;
    let rest = rest.strip_prefix("{ fp32 = ").unwrap_or(rest);
    Some(number(rest.split([',', '}']).next()?))
}

/// Whether `found`, printed with three digits, is `wanted`.
fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= wanted.abs() * 6e-3
}

fn rows(kind: &str) -> Vec<Vec<String>> {
    let table = text(&root().join("tests/data/hardware.csv"));
    let split = |l: &str| l.split(',').map(str::to_owned).collect::<Vec<_>>();
    table.lines().filter(|l| !l.starts_with('#')).map(split).filter(|r| r[0] == kind).collect()
}

#[test]
fn every_device_has_the_published_figures() {
    let rows = rows("device");
    assert_eq!(rows.len(), 45);
    let all = shown(&rows.iter().map(|r| r[2].clone()).collect::<Vec<_>>());
    let mut wrong = String::new();
    for (r, shown) in rows.iter().zip(&all) {
        let reserve = 1.5 * f64::from(1 << 30);
        let record = row(shown, "peak").unwrap();
        let found = [
            Some((number(row(shown, "usable").unwrap()) + reserve) / f64::from(1 << 30)),
            Some(number(row(shown, "hbm").unwrap()) / 1e9),
            peak(record, "bf16").map(|p| p / 1e12),
            peak(record, "fp16").map(|p| p / 1e12),
            peak(record, "fp8_e4m3").map(|p| p / 1e12),
            peak(record, "int8").map(|p| p / 1e12),
            Some(number(row(shown, "power").unwrap())),
        ];
        let names = ["visible memory", "hbm", "bf16", "fp16", "fp8", "int8", "power"];
        for ((name, found), wanted) in names.iter().zip(found).zip(&r[3..]) {
            let Ok(wanted) = wanted.parse::<f64>() else {
                assert!(found.is_none() || *name == "power", "{}: {name} is not published", r[2]);
                continue;
            };
            if !found.is_some_and(|f| near(f, wanted)) {
                let _ = writeln!(wrong, "{}: {name} is {found:?}, published {wanted}", r[2]);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_link_has_the_published_rate() {
    let rows = rows("link");
    assert_eq!(rows.len(), 52);
    let all = shown(&rows.iter().map(|r| r[2].clone()).collect::<Vec<_>>());
    for (r, shown) in rows.iter().zip(&all) {
        let found = number(row(shown, "bandwidth").unwrap()) / 1e9;
        let wanted: f64 = r[3].parse().unwrap();
        // Rates of networks are printed in bits.
        let found = if row(shown, "bandwidth").unwrap().contains("b/s") { found / 8.0 } else { found };
        assert!(near(found, wanted), "{}: {found} GB/s, published {wanted}", r[2]);
    }
}

#[test]
fn every_cluster_has_the_published_number_of_devices() {
    let rows = rows("cluster");
    assert_eq!(rows.len(), 43);
    let all = shown(&rows.iter().map(|r| r[2].clone()).collect::<Vec<_>>());
    for (r, shown) in rows.iter().zip(&all) {
        let devices = row(shown, "devices").unwrap();
        let found = devices.split(' ').next().unwrap().replace(',', "");
        assert_eq!(found, r[3], "{}: {devices}", r[2]);
    }
}

#[test]
fn machines_are_built_in_one_line() {
    let all = shown(&["HGX(H200_SXM, nodes = 4)".into(), "PCIeBox(L40S, per_node = 4, nodes = 6, nics = 2)".into()]);
    assert_eq!(row(&all[0], "devices"), Some("32 x H200_SXM"));
    assert_eq!(row(&all[1], "devices"), Some("24 x L40S"));
}
