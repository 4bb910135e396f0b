//! Tables: what they give at, between and beyond their rows, from rows and from files, known and as nodes.

use parc::diagnostics::{Code, Sink};
use parc::driver;
use parc::eval::{Demand, Evaluator, Num, Quantity, Value};
use parc::expr::{Graph, Input, Kind};
use parc::hir::Program;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources, Span};
use parc::units::Unit;

/// Reads `text` as `site/main.par` beside the files of `others`; runs `work` if nothing is wrong so far.
fn read<R>(
    text: &str,
    others: &[(&str, &str)],
    work: impl for<'p> FnOnce(&mut Evaluator<'p, '_>, &'p Program) -> R,
) -> Result<R, Vec<Code>> {
    let main = format!("edition 1\n{text}\n");
    let files = std::iter::once(("site/main.par", main.as_str())).chain(others.iter().copied());
    let world = MemoryWorld::new(files);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let roots = [RootFile { shown: "site/main.par".into(), path: "site/main.par".into() }];
    let program = driver::front(&mut sources, &world, &roots, &mut sink);
    let codes = |sink: Sink| sink.finish().iter().map(|d| d.code).collect::<Vec<_>>();
    if sink.has_errors() {
        return Err(codes(sink));
    }
    let mut graph = Graph::new();
    let out = work(&mut Evaluator::new(&program, &mut graph, &mut sink), &program);
    let codes = codes(sink);
    if codes.is_empty() { Ok(out) } else { Err(codes) }
}

/// The last `let` of `text`, in base units.
fn value(text: &str, others: &[(&str, &str)]) -> Result<f64, Vec<Code>> {
    read(text, others, |eval, program| {
        let (id, _) = program.entries(program.roots[0]).last().unwrap();
        eval.entry(id, Span::NOWHERE).as_f64().unwrap_or(f64::NAN)
    })
}

/// `t(key)` of a table with `rows` and `fields`; key and value are plain numbers.
fn plain(rows: &str, fields: &str, key: &str) -> Result<f64, Vec<Code>> {
    let keys = key.matches(',').count() + 1;
    let head = ["a: Real", "a: Real, b: Real", "a: Real, b: Real, c: Real"][keys - 1];
    value(&format!("table t({head}) -> Real {{\n  rows = [{rows}]\n  {fields}\n}}\nlet x = t({key})"), &[])
}

fn near(found: Result<f64, Vec<Code>>, wanted: f64) {
    let found = found.unwrap();
    assert!((found - wanted).abs() <= 1e-12 * wanted.abs().max(1.0), "{found} instead of {wanted}");
}

#[test]
fn lines_between_rows_are_those_of_a_hand() {
    let rows = "[1, 10], [4, 40], [16, 100]";
    near(plain(rows, "", "4"), 40.0);
    // A quarter of the way from 4 to 16: 40 + (100 - 40) / 4.
    near(plain(rows, "interpolate = linear", "7"), 55.0);
    near(plain(rows, "interpolate = nearest", "7"), 40.0);
    near(plain(rows, "interpolate = nearest", "10"), 40.0);
    near(plain(rows, "interpolate = nearest", "10.5"), 100.0);
    // 8 is half way from 4 to 16 on a logarithmic scale.
    near(plain(rows, "interpolate = log_linear", "8"), 70.0);
    // And the value there the geometric mean: sqrt(4 · 16) = 8 of y = 10 x.
    near(plain("[1, 10], [4, 40], [16, 160]", "interpolate = log_log", "8"), 80.0);
}

#[test]
fn several_keys_are_a_grid() {
    let rows = "[0, 0, 0], [0, 2, 4], [4, 0, 8], [4, 2, 20]";
    near(plain(rows, "", "4, 2"), 20.0);
    // Half way in each: the mean of the corners.
    near(plain(rows, "", "2, 1"), 8.0);
    // A quarter along `a`, on the row b = 2: 4 + (20 - 4) / 4.
    near(plain(rows, "", "1, 2"), 8.0);
    let shuffled = "[4, 2, 20], [0, 2, 4], [4, 0, 8], [0, 0, 0]";
    near(plain(shuffled, "", "1, 2"), 8.0);
    assert_eq!(plain("[0, 0, 0], [0, 2, 4], [4, 0, 8]", "", "0, 0"), Err(vec![Code::TableRows]), "not full");
    assert_eq!(plain("[0, 0, 0], [0, 0, 4], [4, 0, 8], [4, 2, 1]", "", "0, 0"), Err(vec![Code::TableRows]), "twice");
}

#[test]
fn beyond_the_rows_it_does_as_told() {
    let rows = "[1, 10], [2, 30], [4, 40]";
    assert_eq!(plain(rows, "", "0.5"), Err(vec![Code::OutOfRange]), "the default");
    assert_eq!(plain(rows, "outside = error", "5"), Err(vec![Code::OutOfRange]));
    near(plain(rows, "outside = clamp(warn = false)", "5"), 40.0);
    near(plain(rows, "outside = clamp(warn = false)", "0"), 10.0);
    assert_eq!(plain(rows, "outside = clamp(warn = true)", "5"), Err(vec![Code::TableClamped]), "a warning");
    near(plain(rows, "outside = extrapolate", "6"), 50.0);
    near(plain(rows, "outside = extrapolate", "0"), -10.0);
    // Three times as far as from 1 to 2 on a logarithmic scale, downwards: 10 - 3 · 20.
    near(plain(rows, "outside = extrapolate, interpolate = log_linear", "0.125"), -50.0);
    // One row has one value everywhere it has one.
    near(plain("[3, 7]", "outside = clamp(warn = false)", "100"), 7.0);
}

#[test]
fn units_belong_to_columns() {
    let table = "table bus(size: Bytes, nodes: Int) -> Bandwidth {
  rows = [[1 MiB, 1, 8 GB/s], [3 MiB, 1, 10 GB/s], [1 MiB, 2, 4 GB/s], [3 MiB, 2, 6 GB/s]]
}";
    near(value(&format!("{table}\nlet x = bus(2 MiB, 1)"), &[]), 9e9);
    near(value(&format!("{table}\nlet x = bus(nodes = 2, size = 2 MiB)"), &[]), 5e9);
    assert_eq!(value(&format!("{table}\nlet x = bus(2 s, 1)"), &[]), Err(vec![Code::UnitMismatch]));
    assert_eq!(value(&format!("{table}\nlet x = bus(2 MiB)"), &[]), Err(vec![Code::ArgumentWrong]));
    assert_eq!(value(&format!("{table}\nlet x = 1 s + bus(2 MiB, 1)"), &[]), Err(vec![Code::UnitMismatch]));
    let wrong = "table bus(size: Bytes) -> Bandwidth { rows = [[1 MiB, 8 GB], [2 MiB, 9 GB/s]] }\nlet x = 1";
    assert_eq!(value(wrong, &[]), Err(vec![Code::UnitMismatch]));
    let user = "unit img\ntable t(n: Img) -> Time { rows = [[1 img, 1 s], [3 img, 2 s]] }\nlet x = t(2 img)";
    near(value(user, &[]), 1.5);
}

#[test]
fn with_replaces_what_a_table_says() {
    let text = "table t(a: Real) -> Real { rows = [[1, 1], [2, 2]] }
table wide = t with { outside = extrapolate }
let x = wide(3) + t(1)";
    near(value(text, &[]), 4.0);
}

#[test]
fn files_are_read_through_the_same_door() {
    let table = |from: &str| format!("table t(size: Bytes) -> Bandwidth {{\n  from = csv({from})\n}}\nlet x = t(3 kB)");
    let columns = "size = column(\"size\", 1 B), value = column(\"busbw\", 1 GB/s)";
    let csv = "\u{feff}kind, size ,busbw\n\"a, b\",2000,4\n\nring,4000,8.0e0\n";
    let beside = [("site/f.csv", csv)];
    near(value(&table(&format!("\"f.csv\", {columns}")), &beside), 6e9);
    near(value(&table(&format!("\"../site/f.csv\", {columns}")), &[("site/../site/f.csv", csv)]), 6e9);
    assert_eq!(value(&table(&format!("\"g.csv\", {columns}")), &beside), Err(vec![Code::FileMissing]));
    let wrong = "size = column(\"size\", 1 s), value = column(\"busbw\", 1 GB/s)";
    assert_eq!(value(&table(&format!("\"f.csv\", {wrong}")), &beside), Err(vec![Code::UnitMismatch]));
    let bare = "size = column(\"size\", 1 B), value = column(\"busbw\")";
    assert_eq!(value(&table(&format!("\"f.csv\", {bare}")), &beside), Err(vec![Code::UnitMismatch]));
    let header = "size = column(\"bytes\", 1 B), value = column(\"busbw\", 1 GB/s)";
    assert_eq!(value(&table(&format!("\"f.csv\", {header}")), &beside), Err(vec![Code::NameUnknown]));
    let missing = "value = column(\"busbw\", 1 GB/s)";
    assert_eq!(value(&table(&format!("\"f.csv\", {missing}")), &beside), Err(vec![Code::ArgumentWrong]));
    for bad in ["size,busbw\n1,x\n", "size,busbw\n1\n", "size,busbw\n1,inf\n", "size,busbw\n", "size,busbw\n2,1\n1,1\n"]
    {
        let found = value(&table(&format!("\"f.csv\", {columns}")), &[("site/f.csv", bad)]);
        assert_eq!(found, Err(vec![Code::TableRows]), "{bad:?}");
    }
}

#[test]
fn what_depends_on_the_layout_follows_the_same_lines() {
    let grids = [
        ("a: Real", "[1, 10], [4, 40], [16, 100], [20, 90]"),
        ("a: Real, b: Real", "[1, 1, 3], [1, 8, 4], [4, 1, 8], [4, 8, 20], [16, 1, 2], [16, 8, 1]"),
    ];
    for (head, rows) in grids {
        for between in ["linear", "nearest", "log_linear", "log_log"] {
            for beyond in ["clamp(warn = false)", "extrapolate"] {
                let two = head.contains("b:");
                let (params, call) = if two { ("x: Real, y: Real", "t(x, y)") } else { ("x: Real", "t(x)") };
                let text = format!(
                    "table t({head}) -> Real {{\n  rows = [{rows}], interpolate = {between}, outside = {beyond}\n}}
fn f({params}) -> Real = {call}"
                );
                let points = [0.5, 1.0, 1.7, 2.5, 4.0, 7.0, 9.99, 10.0, 15.0, 16.0, 19.0, 40.0];
                let difference = read(&text, &[], |eval, program| {
                    let (id, _) = program.entries(program.roots[0]).last().unwrap();
                    let Value::Func(f) = eval.entry(id, Span::NOWHERE) else { panic!("a function") };
                    let keys = if two { 2 } else { 1 };
                    let mut input = |name: &str| {
                        eval.graph.input(Input { name: name.into(), kind: Kind::Real, lo: 0.25, hi: 64.0 })
                    };
                    let inputs: Vec<_> = ["x", "y"][..keys].iter().map(|n| input(n)).collect();
                    let symbols = inputs.iter().map(|i| Value::sym(*i, Unit::none())).collect();
                    let Value::Num(Quantity { num: Num::Sym(node), .. }) = eval.invoke(&f, symbols, Span::NOWHERE)
                    else {
                        panic!("a node")
                    };
                    let mut worst: f64 = 0.0;
                    for x in points {
                        for y in if two { &points[..] } else { &points[..1] } {
                            let at = &[x, *y][..keys];
                            let node = eval.graph.eval(at, &[node])[0];
                            let known = at.iter().map(|v| Value::real(*v, Unit::none())).collect();
                            let known = eval.invoke(&f, known, Span::NOWHERE).as_f64().unwrap();
                            worst = worst.max((node - known).abs() / known.abs().max(1.0));
                        }
                    }
                    worst
                });
                assert!(difference.clone().unwrap() < 1e-12, "{head}, {between}, {beyond}: {difference:?}");
            }
        }
    }
}

#[test]
fn a_key_that_depends_on_the_layout_has_to_lie_inside() {
    let text = "table t(a: Real) -> Real { rows = [[1, 1], [4, 4]] }
fn f(x: Real) -> Real = if x < 1 then 1 else t(x)";
    let found = read(text, &[], |eval, program| {
        let (id, _) = program.entries(program.roots[0]).last().unwrap();
        let Value::Func(f) = eval.entry(id, Span::NOWHERE) else { panic!("a function") };
        let x = eval.graph.input(Input { name: "x".into(), kind: Kind::Real, lo: 0.0, hi: 8.0 });
        eval.invoke(&f, vec![Value::sym(x, Unit::none())], Span::NOWHERE);
        let [c] = &eval.conditions[..] else { panic!("one condition") };
        assert!(matches!(c.what, Demand::Inside(_)));
        let holds = |x: f64| eval.graph.eval(&[x], &[c.cond])[0] != 0.0;
        [0.5, 1.0, 4.0, 4.5].map(holds)
    });
    assert_eq!(found, Ok([true, true, true, false]), "below 1 the table is not asked");
}
