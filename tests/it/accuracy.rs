//! `docs/accuracy.md`: predictions beside measurements that nobody here made, and what the difference is.
//!
//! `PARC_BLESS=1` writes the tables. Other measurements with the same columns are read where an environment variable names
//! their file: `PARC_COLLECTIVES`.

use crate::compile;
use parc::analyse::costs::Costs;
use parc::diagnostics::Sink;
use parc::eval::Evaluator;
use parc::expr;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The cells of a line; one that holds a comma stands in quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut out, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.last_mut().expect("a cell").push(c),
        }
    }
    out
}

/// The lines of a CSV as maps from header to cell.
pub(crate) fn csv(variable: &str, own: &str) -> Vec<BTreeMap<String, String>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(own);
    let path = std::env::var(variable).map_or(own, Into::into);
    let text = fs::read_to_string(&path).expect("the file of measurements");
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let header = cells(lines.next().expect("a header"));
    lines.map(|l| header.iter().cloned().zip(cells(l)).collect()).collect()
}

/// Holds the part `name` of `docs/accuracy.md` to `made`, or writes it.
pub(crate) fn section(name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/accuracy.md");
    let text = fs::read_to_string(&path).expect("docs/accuracy.md");
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let from = text.find(&begin).expect("the begin of the part") + begin.len();
    let to = text.find(&end).expect("the end of the part");
    let made = format!("\n{made}\n");
    if std::env::var_os("PARC_BLESS").is_some() {
        fs::write(&path, format!("{}{made}{}", &text[..from], &text[to..])).expect("writing the document");
    } else {
        assert_eq!(&text[from..to], made, "docs/accuracy.md is not what the test measures: PARC_BLESS=1 writes it");
    }
}

/// The middle of `values`.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n % 2 == 1 { values[n / 2] } else { f64::midpoint(values[n / 2 - 1], values[n / 2]) }
}

/// A machine of the measurements as a cluster.
fn cluster(row: &BTreeMap<String, String>) -> String {
    let (nodes, gpus): (i64, i64) = (row["nodes"].parse().expect("nodes"), row["gpus"].parse().expect("gpus"));
    let (device, link, adds) = match row["device"].as_str() {
        "a100-sxm-40gb" => ("A100_SXM_40", "NVLink3", false),
        "a100-sxm-80gb" => ("A100_SXM_80", "NVLink3", false),
        "h100-sxm" => ("H100_SXM", "NVLink4", true),
        "h200-sxm" => ("H200_SXM", "NVLink4", true),
        "h800-sxm" => ("H800_SXM", "NVLink4_H800", true),
        "b200-sxm" => ("B200_SXM", "NVLink5", true),
        "b300-sxm" => ("B300_SXM", "NVLink5", true),
        "gb200" => ("GB200", "NVLink5", true),
        "gb300" => ("GB300", "NVLink5", true),
        "rtx-pro-6000-blackwell-server" => ("RTX_PRO_6000", "PCIe5_x16", false),
        "rtx-5090" => ("RTX5090", "PCIe5_x16", false),
        "l40s" => ("L40S", "PCIe4_x16", false),
        other => panic!("no device for {other}"),
    };
    let topology = if link.starts_with("PCIe") { "host_bridge" } else { "switch" };
    let racks = row["platform"].contains("NVL72") || row["platform"].contains("racks");
    let (inner, outer) = if racks { (72, gpus / 72) } else { (gpus / nodes, nodes) };
    let nic = match row["platform"].as_str() {
        "AWS p4d EFA v1" => "4 * EFA_v1",
        "AWS p6-b200" => "8 * EFA_v4",
        "3 nodes" => "4 * IB_HDR",
        _ if racks => "72 * IB_NDR",
        _ => "8 * IB_NDR",
    };
    let names: Vec<_> = [device, link].into_iter().chain(nic.split(' ').next_back()).collect();
    let mut text = format!("use std::hardware::{{{}}}\n", names.join(", "));
    let _ = writeln!(text, "cluster Measured {{");
    let block = format!("{{ topology = {topology}, in_network_reduction = {adds} }}");
    let _ = writeln!(text, "  level node = {} of {device} over {link} {block}", if outer > 1 { inner } else { gpus });
    if outer > 1 {
        let _ = writeln!(text, "  level pod = {outer} of node over {nic} {{ topology = fat_tree(rails = 8) }}");
    }
    text + "}\n"
}

/// Seconds of collectives over all devices of `cluster`, by function and bytes.
fn seconds(cluster: &str, cost: &str, asked: &[(&str, f64)]) -> Vec<f64> {
    let text = format!(
        "edition 1
{cluster}
layout Alone {{ mesh [dp = devices], shard B over dp }}
train t {{
  model = Llama(layers = 1, hidden = 64, heads = 4, kv_heads = 4, ffn = 128, vocab = 512)
  cluster = Measured, layout = Alone, cost = std::cost::{cost}, precision = fp16_mixed
  batch = 10080 seq, sequence = 64 tok, micro_batch = 1 seq
}}
"
    );
    let checked = compile::clean(&text);
    let (mut graph, mut sink) = (expr::Graph::new(), Sink::new());
    let settings = compile::settings(&[]);
    let job = parc::elaborate::elaborate(&checked.program, checked.job(), &settings, &mut graph, &mut sink);
    let job = job.expect("a sound job");
    let mut eval = Evaluator::new(&checked.program, &mut graph, &mut sink);
    let mut costs = Costs::new(&mut eval, &job, false).expect("a peak");
    let axes: Vec<_> = (0..job.layout.axes.len()).map(|a| parc::layout::AxisId(a as u16)).collect();
    let found = asked.iter().map(|(function, bytes)| costs.collective_seconds(function, *bytes, &axes)).collect();
    assert!(!costs.failed());
    found
}

/// Errors of one group of measurements: predicted over measured, less one.
type Errors = BTreeMap<(String, String, String), BTreeMap<String, Vec<f64>>>;

fn size(bytes: f64) -> String {
    let [k, m, g] = [10, 20, 30].map(|e| f64::from(1 << e));
    if bytes >= g {
        format!("{} GiB", bytes / g)
    } else if bytes >= m {
        format!("{} MiB", bytes / m)
    } else {
        format!("{} KiB", bytes / k)
    }
}

fn table(errors: &Errors, half: &str) -> String {
    let mut out = String::from("| system | kind | 4 KiB | 64 KiB | 1 MiB | 16 MiB | 64 MiB | 512 MiB | more |\n");
    out += "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for ((h, system, kind), by_size) in errors {
        if h != half {
            continue;
        }
        let known = ["4 KiB", "64 KiB", "1 MiB", "16 MiB", "64 MiB", "512 MiB"];
        let system = system.trim_start();
        let cell = |e: Vec<f64>| if e.is_empty() { String::new() } else { format!("{:+.0}%", 100.0 * median(e)) };
        let mut cells: Vec<_> = known.iter().map(|s| cell(by_size.get(*s).cloned().unwrap_or_default())).collect();
        let rest = by_size.iter().filter(|(s, _)| !known.contains(&s.as_str())).flat_map(|(_, e)| e.clone()).collect();
        cells.push(cell(rest));
        let _ = writeln!(out, "| {system} | {} | {} |", kind.replace('_', "-"), cells.join(" | "));
    }
    out
}

#[test]
fn collectives_against_measured_curves() {
    let rows = csv("PARC_COLLECTIVES", "collectives.csv");
    let own = std::env::var_os("PARC_COLLECTIVES").is_none();
    // Every run of the suite looks at some machines.
    let all_rows = !own || std::env::var_os("PARC_BLESS").is_some();
    let mut out = String::new();
    for (cost, words) in [("nccl", "looks up the curves of the first half"), ("default", "closed formulas")] {
        let mut errors = Errors::new();
        let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut by_cluster: BTreeMap<String, Vec<&BTreeMap<String, String>>> = BTreeMap::new();
        for row in &rows {
            by_cluster.entry(cluster(row)).or_default().push(row);
        }
        for (cluster, rows) in
            by_cluster.into_iter().enumerate().filter(|(i, _)| all_rows || i % 8 == 0).map(|(_, c)| c)
        {
            let asked: Vec<_> = rows.iter().map(|r| (r["op"].as_str(), r["bytes"].parse().expect("bytes"))).collect();
            for (row, found) in rows.iter().zip(seconds(&cluster, cost, &asked)) {
                let measured: f64 = row["microseconds"].parse().expect("microseconds");
                let error = found * 1e6 / measured - 1.0;
                let nodes = if row["nodes"] == "1" { String::new() } else { format!(" on {} nodes", row["nodes"]) };
                let system = format!("{:>4} × {}{nodes}", row["gpus"], row["device"]);
                let bytes: f64 = row["bytes"].parse().expect("bytes");
                let half = if row["half"] == "fit" { "fit" } else { "judge" };
                all.entry(half).or_default().push(error.abs());
                let key = (half.to_string(), system, row["op"].clone());
                errors.entry(key).or_default().entry(size(bytes)).or_default().push(error);
            }
        }
        let [fit, judge] = ["fit", "judge"].map(|h| 100.0 * median(all.get(h).cloned().unwrap_or(vec![0.0])));
        let _ = writeln!(
            out,
            "`std::cost::{cost}`, {words}: median error {fit:.0}% on the first half, {judge:.0}% on the second.\n"
        );
        let _ = writeln!(out, "Second half:\n\n{}", table(&errors, "judge"));
        if cost == "default" {
            let _ = writeln!(out, "First half:\n\n{}", table(&errors, "fit"));
        }
        if own {
            // A few machines alone may be further off than all of them.
            let most = match (all_rows, cost) {
                (true, "nccl") => 8.0,
                (true, _) => 20.0,
                (false, _) => 40.0,
            };
            assert!(judge < most, "{cost}: {judge}%");
        }
    }
    println!("{out}");
    if own && all_rows {
        section("collectives", out.trim_end());
    }
}
