//! Reports: what people see, and that nothing in a plan can spoil it.

use crate::sample_plans::{self, Data, Mesh, Pipeline, Tensor};
use parc::emit::plan::{Claim, Plan};
use parc::emit::report::{self, Neighbour, Style, WIDTH};

fn neighbours() -> Vec<Neighbour> {
    let one = |edit: &str, step_change, memory_change_bytes, fits| Neighbour {
        edit: edit.into(),
        step_change,
        memory_change_bytes,
        fits,
    };
    vec![
        one("recompute all", 0.241, -30_600_000_000, true),
        one("split = balanced(counting = [embed, head])", -0.031, 430_000_000, true),
        one("micro_batch = 2 seq", -0.016, 25_877_000_000, false),
    ]
}

/// Checks what holds for every report, and gives it.
fn check(plan: &Plan) -> String {
    let text = report::text_with(plan, &neighbours(), Style::Plain);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
        assert!(!line.ends_with(' ') && !line.chars().any(char::is_control), "{line:?}");
    }
    assert!(!text.contains("\n\n\n") && text.ends_with('\n'));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0].contains("DOES NOT FIT"), !plan.memory.fits, "{}", lines[0]);
    assert!(lines[0].contains("FIT"), "the verdict is on the first line: {}", lines[0]);
    assert!(lines[3].contains('$') || lines[3].contains("no price"), "money is on the fourth: {}", lines[3]);
    let mut plain = String::new();
    let mut rest = report::text_with(plan, &neighbours(), Style::Terminal);
    assert!(rest.contains("\u{1b}[1m"));
    while let Some(at) = rest.find('\u{1b}') {
        let end = at + rest[at..].find('m').unwrap() + 1;
        plain += &rest[..at];
        rest.drain(..end);
    }
    plain += &rest;
    let trimmed: Vec<_> = plain.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, lines, "colour changes nothing but colour");
    text
}

#[test]
fn llama3_8b() {
    insta::assert_snapshot!(check(&sample_plans::llama3_8b()));
}

#[test]
fn llama3_405b_does_not_fit() {
    insta::assert_snapshot!(check(&sample_plans::llama3_405b()));
}

#[test]
fn gpt3() {
    insta::assert_snapshot!(check(&sample_plans::gpt3()));
}

/// Every collective, none left out, within the page.
#[test]
fn every_collective_with_its_cause() {
    let plan = sample_plans::gpt3();
    let text = report::collectives(&plan, Style::Plain);
    assert!(text.lines().all(|l| l.chars().count() <= WIDTH), "{text}");
    assert_eq!(text.lines().count(), 1 + 2 * plan.collectives.len());
    insta::assert_snapshot!(text);
}

#[test]
fn one_device_without_a_price() {
    let d = sample_plans::llama3_8b().model.decoder.unwrap();
    let mesh: Mesh = &[("dp", 1, Data)];
    let mut plan = sample_plans::plan("tiny", &d, mesh, 1, &[32], (1, 128, 1));
    plan.time.price = 0.0;
    plan.cluster.price_per_hour = 0.0;
    plan.collectives.clear();
    plan.claims.clear();
    plan.time.step = 0.0412;
    plan.time.parts = vec![("matmul".into(), 0.04), ("optimizer".into(), 0.0012)];
    insta::assert_snapshot!(check(&plan));
}

/// A pipeline of 64 stages with these layers.
fn deep(layers: &[u64]) -> Plan {
    let d = sample_plans::llama3_405b().model.decoder.unwrap();
    let mesh: Mesh = &[("pp", 64, Pipeline), ("dp", 2, Data), ("tp", 8, Tensor)];
    sample_plans::plan("deep", &d, mesh, 1, layers, (256, 8192, 1))
}

#[test]
fn sixty_four_stages_keep_to_the_page() {
    let mut layers = vec![2; 64];
    (layers[0], layers[63]) = (1, 1);
    let mut plan = deep(&layers);
    let text = check(&plan);
    assert!(text.contains("1 on 0, 2 on 1-62, 1 on 63"), "{text}");
    assert!(text.contains("of 64 different stages shown"), "{text}");
    // Stages that look the same share a column.
    for stage in &mut plan.memory.stages[1..63] {
        stage.in_flight = 8;
        stage.activations = 20 << 30;
        stage.total = 40 << 30;
    }
    let text = check(&plan);
    let title = text.lines().find(|l| l.contains("MEMORY")).unwrap();
    assert!(title.ends_with("0  1-62    63"), "{title}");
    assert!(!text.contains("stages shown"));
}

#[test]
fn figures_are_sums_of_the_plan() {
    let plan = sample_plans::llama3_8b();
    let text = check(&plan);
    // 214 GB and 107 GB of the same gather: 321 GB, 0.32 + 0.16 s busy, none hidden.
    let row = text.lines().find(|l| l.contains("tp all-gather activations")).unwrap();
    assert!(row.contains("321 GB") && row.contains("0.480") && row.ends_with(" 0%"), "{row}");
    // 1 - 0.004 / 0.017 of the parameter gather is hidden.
    assert!(text.lines().any(|l| l.contains("dp all-gather parameters") && l.ends_with("76.5%")));
    // 128 × 8192 tokens in 6.83 s on 16 devices at 2.5 $/h: 16 × 2.5 × 6.83 / 3600 = $0.0759; / 1.048576 Mtok = $0.0724.
    assert!(text.contains("$0.076/step   $0.072/Mtok"), "{text}");
    // 1e12 / 1048576 = 953,674.3 steps of 6.83 s = 75.4 days.
    assert!(text.contains("1 Ttok = 953,675 steps = 75.4 days"), "{text}");
}

#[test]
fn failing_claims_are_on_the_first_line() {
    let mut plan = sample_plans::llama3_8b();
    plan.claims[1].holds = false;
    plan.claims.push(Claim { text: "fits".into(), kind: "expect", holds: true, found: "yes".into(), line: 1 });
    let text = check(&plan);
    assert!(text.lines().next().unwrap().ends_with("FITS   1 of 2 expects FAIL"), "{text}");
    assert!(text.contains("mfu ~ 41% +- 4 pp: 42.0% FAILS"));
}

#[test]
fn no_plan_spoils_the_page() {
    let long = "wide ".repeat(100);
    for name in ["\u{1b}[2J\n\r\u{202e}", long.as_str(), "", "模型🚀"] {
        let mut plan = sample_plans::llama3_405b();
        for s in
            [&mut plan.job.name, &mut plan.job.file, &mut plan.model.name, &mut plan.cluster.device, &mut plan.std_hash]
        {
            name.clone_into(s);
        }
        plan.pipeline.schedule = name.into();
        plan.job.set = vec![(name.into(), name.into())];
        for level in &mut plan.cluster.levels {
            (level.name, level.link) = (name.into(), name.into());
        }
        for axis in &mut plan.layout.axes {
            (axis.name, axis.level) = (name.into(), name.into());
        }
        for claim in &mut plan.claims {
            (claim.text, claim.found) = (name.into(), name.into());
        }
        for c in &mut plan.collectives {
            (c.axes, c.level) = (vec![name.into(); 3], name.into());
        }
        for part in &mut plan.time.parts {
            part.0 = name.into();
        }
        plan.layout.pads = vec![(name.into(), 1, u64::MAX)];
        check(&plan);
    }
    for x in [f64::NAN, f64::INFINITY, 0.0, 1e300, -1.0] {
        let mut plan = sample_plans::llama3_8b();
        (plan.time.step, plan.time.tokens_per_s, plan.time.mfu, plan.time.price) = (x, x, x, x);
        (plan.cluster.peak, plan.pipeline.bubble, plan.cluster.price_per_hour) = (x, x, x);
        for part in &mut plan.time.parts {
            part.1 = x;
        }
        for c in &mut plan.collectives {
            (c.busy, c.exposed, c.sent) = (x, x, u64::MAX);
        }
        for s in &mut plan.memory.stages {
            (s.total, s.params, s.in_flight) = (u64::MAX, u64::MAX, u64::MAX);
        }
        check(&plan);
    }
    let mut plan = sample_plans::llama3_8b();
    (plan.training.batch, plan.cluster.devices, plan.memory.heaviest) = (0, 0, 99);
    plan.memory.stages.clear();
    plan.cluster.levels.clear();
    plan.layout.axes.clear();
    plan.time.parts.clear();
    plan.pipeline.chunks.clear();
    check(&plan);
}
