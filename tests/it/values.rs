//! What expressions evaluate to, and what is said of those that cannot be.

use parc::diagnostics::{Code, Diagnostic, Sink};
use parc::driver;
use parc::eval::{Evaluator, Num, Quantity, Value};
use parc::expr::Graph;
use parc::resolve::RootFile;
use parc::source::{MemoryWorld, Sources, Span};

/// Evaluates the last `let` of `text`; its text form, or the codes of what is wrong.
fn value(text: &str) -> Result<String, Vec<Code>> {
    let source = format!("edition 1\n{text}\n");
    let world = MemoryWorld::new([("main.par", source)]);
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let roots = [RootFile { shown: "main.par".into(), path: "main.par".into() }];
    let program = driver::front(&mut sources, &world, &roots, &mut sink);
    let codes = |list: Vec<Diagnostic>| list.iter().map(|d| d.code).collect::<Vec<_>>();
    if sink.has_errors() {
        return Err(codes(sink.finish()));
    }
    let mut graph = Graph::new();
    let (id, _) = program.entries(program.roots[0]).last().unwrap();
    let shown = {
        let mut eval = Evaluator::new(&program, &mut graph, &mut sink);
        let v = eval.entry(id, Span::NOWHERE);
        text_of(&v)
    };
    if sink.has_errors() { Err(codes(sink.finish())) } else { Ok(shown) }
}

fn text_of(v: &Value<'_>) -> String {
    match v {
        Value::Num(Quantity { num: Num::Int(n), unit }) => format!("{n} {unit}").trim().into(),
        Value::Num(Quantity { num: Num::Real(x), unit }) => format!("{x:?} {unit}").trim().into(),
        Value::List(l) => format!("[{}]", l.iter().map(text_of).collect::<Vec<_>>().join(", ")),
        Value::Bool(b) => format!("{b:?}"),
        Value::Record(r) => r.name.to_string(),
        other => other.noun(),
    }
}

fn ok(text: &str) -> String {
    value(text).unwrap_or_else(|codes| panic!("{text}: {codes:?}"))
}

#[test]
fn units_follow_the_arithmetic() {
    assert_eq!(ok("let x = 80 GiB - 1.5 GiB"), "84288733184 B");
    assert_eq!(ok("let x = 400 Gb/s"), "50000000000 B/s");
    assert_eq!(ok("let x = 1 GB / (50 GB/s)"), "0.02 s");
    assert_eq!(ok("let x = 2.5 $/h * 3600 s"), "2.5 $");
    assert_eq!(ok("let x = 2 FLOP * 3 * 4"), "24 FLOP");
    assert_eq!(ok("let x = (3 GB) ^ 2"), "9000000000000000000 B^2");
    assert_eq!(ok("let x = 10 MAC / 5 FLOP"), "4.0");
    assert_eq!(ok("let x = 8 ktok + 192 tok"), "8192 tok");
}

#[test]
fn whole_numbers_stay_whole() {
    assert_eq!(ok("let x: Int = 64 / 8"), "8");
    assert_eq!(ok("let x = 64 / 8"), "8.0");
    assert_eq!(ok("let x = 7 div 2 + 7 mod 2"), "4");
    assert_eq!(ok("let x = (0 - 7) mod 4"), "1");
    assert_eq!(ok("let x = ceil_div(7, 2)"), "4");
    assert_eq!(ok("let x = 40e6"), "40000000");
    assert_eq!(value("let x: Int = 64 / 6"), Err(vec![Code::InexactDivision]));
    assert_eq!(value("let x = 7 div 0"), Err(vec![Code::OutOfRange]));
}

#[test]
fn lists_ranges_and_functions() {
    assert_eq!(ok("let x = [i * i for i in 0..5 if i mod 2 == 0]"), "[0, 4, 16]");
    assert_eq!(ok("let x = flatten([[i, 0] for i in 1..3])"), "[1, 0, 2, 0]");
    assert_eq!(ok("let x = sum([7] + [8] * 14 + [7])"), "126");
    assert_eq!(ok("let x = divisors(12)"), "[1, 2, 3, 4, 6, 12]");
    assert_eq!(ok("fn f(n: Int, d: Time) -> Time = n * d\nlet x = f(3, 2 ms)"), "0.006 s");
    assert_eq!(ok("fn f(n: Int, k: Int = n + 1) -> Int { let a = n * k\nreturn a }\nlet x = f(3)"), "12");
    assert_eq!(ok("let x = max(1 GB/s, 3 GB/s, 2 GB/s)"), "3000000000 B/s");
    assert_eq!(ok("let x = if 2 divides 6 then 1 s else 2 s"), "1 s");
}

#[test]
fn records_derive_what_is_not_given() {
    let device =
        "device D { memory = 80 GiB, reserve = 2 GiB, hbm = 1 TB/s, peak = { bf16 = 1 TFLOP/s }, power = 1 W }\n";
    assert_eq!(ok(&format!("{device}let x = D.usable")), "83751862272 B");
    // What follows from a field follows the new one.
    assert_eq!(ok(&format!("{device}let x = (D with {{ memory = 40 GiB }}).usable")), "40802189312 B");
    assert_eq!(ok(&format!("{device}let x = D.sms")), "1");
    assert_eq!(ok(&format!("{device}let x = D.peak.bf16")), "1000000000000 FLOP/s");
    assert_eq!(ok("let x = bf16_mixed.gather"), "bf16");
    assert_eq!(ok("let x = (bf16_mixed with { param = fp32 }).gather"), "bf16", "the library states it");
    let bare = "precision P { param = fp16 }\n";
    assert_eq!(ok(&format!("{bare}let x = P.gather")), "fp16", "and by itself it follows `param`");
}

#[test]
fn what_does_not_fit_is_said_once() {
    assert_eq!(value("let x = 80 GiB + 3 s"), Err(vec![Code::UnitMismatch]));
    assert_eq!(value("let x = 400 Gbps"), Err(vec![Code::UnitUnknown]));
    assert_eq!(value("let x = 1 + true"), Err(vec![Code::KindMismatch]));
    assert_eq!(value("fn f(n: Time) -> Time = n\nlet x = f(3 GiB)"), Err(vec![Code::UnitMismatch]));
    assert_eq!(value("fn f() -> Int = g()\nfn g() -> Int = f()\nlet x = f()"), Err(vec![Code::Recursion]));
    assert_eq!(value("let x = y\nlet y = x"), Err(vec![Code::Recursion]));
    assert_eq!(value("let x = [0] * 2000000"), Err(vec![Code::LimitExceeded]));
    assert_eq!(value("let x = 2 ^ 64 * 2 ^ 64"), Err(vec![Code::LimitExceeded]));
}

#[test]
fn distributions_have_means_and_percentiles() {
    let near = |text: &str, wanted: f64| {
        let shown = ok(&format!("let x = {text}"));
        let found: f64 = shown.split(' ').next().unwrap().parse().unwrap();
        assert!((found - wanted).abs() <= 2e-9 * wanted.abs(), "{text}: {found} instead of {wanted}");
    };
    near("mean(point(3 s))", 3.0);
    near("mean(5 tok)", 5.0);
    near("p99(5 tok)", 5.0);
    near("mean(uniform(2 s, 6 s))", 4.0);
    near("p95(uniform(0, 10))", 9.5);
    near("max(uniform(0, 10))", 10.0);
    // The 95th and 99th percentile of the standard normal law: 1.6448536269514722 and 2.3263478740408408.
    near("p95(normal(mean = 100, sd = 10))", 116.448_536_269_514_7);
    near("p99(normal(mean = 100, sd = 10))", 123.263_478_740_408_4);
    // exp(1/2) = 1.6487212707001282; exp(1.6448536269514722) = 5.180251602233015.
    near("mean(lognormal(median = 900 tok, sigma = 1.0))", 900.0 * 1.648_721_270_700_128_2);
    near("p50(lognormal(median = 900 tok, sigma = 1.0))", 900.0);
    near("p95(lognormal(median = 900 tok, sigma = 1.0))", 900.0 * 5.180_251_602_233_015);
    near("p50(lognormal(mean = 900 tok, sigma = 1.0))", 900.0 / 1.648_721_270_700_128_2);
    near("max(lognormal(median = 900 tok, sigma = 1.0, max = 8 ktok))", 8_000.0);
    near("p99(lognormal(median = 900 tok, sigma = 1.0, max = 8 ktok))", 8_000.0);
    // Cut at its median: half of the law is below, with mean exp(1/2) Φ(-1) = 0.26158..., and half is 1.
    near("mean(lognormal(median = 1, sigma = 1.0, max = 1))", 1.648_721_270_700_128_2 * 0.158_655_253_931_457_05 + 0.5);
    // -ln(0.05) = 2.995732273553991.
    near("p95(exponential(rate = 2 step/s)) * 1 step/s", 2.995_732_273_553_991 / 2.0);
    near("mean(poisson(mean = 3))", 3.0);
    // P(X <= 6) = 0.9665, P(X <= 5) = 0.9161 for mean 3.
    near("p95(poisson(mean = 3))", 6.0);
    near("mean(mixture([[1, point(2)], [3, uniform(0, 8)]]))", 3.5);
    // Three quarters even over 0..8: half of all below means x = 8 (0.5 - 0.25) / 0.75 once 2 is counted.
    near("p50(mixture([[1, point(2)], [3, uniform(0, 8)]]))", 8.0 * 0.25 / 0.75);
}

#[test]
fn distributions_say_what_they_lack() {
    let code = |text: &str| value(&format!("let x = {text}")).unwrap_err();
    assert_eq!(code("mean(normal(mean = 3 s, sd = 1 B))"), [Code::UnitMismatch]);
    assert_eq!(code("mean(lognormal(median = 3, sigma = 1 s))"), [Code::UnitMismatch]);
    assert_eq!(code("mean(normal(mean = 3, deviation = 1))"), [Code::ArgumentWrong]);
    assert_eq!(code("mean(normal(mean = 3))"), [Code::ArgumentWrong]);
    assert_eq!(code("mean(zipf(s = 1.1))"), [Code::KindMismatch]);
    assert_eq!(code("1 s + mean(uniform(1 B, 2 B))"), [Code::UnitMismatch]);
    assert_eq!(code("mean([1, 2])"), [Code::KindMismatch]);
}

#[test]
fn lets_stand_in_any_order() {
    assert_eq!(ok("fn f(n: Int) -> Int {\n  let b = a + 1\n  let a = 2 * n\n  return b\n}\nlet x = f(3)"), "7");
}
