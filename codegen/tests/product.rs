//! Emitted evaluators, called from C and from Python, against the numbers of the compiler itself.
#![cfg(feature = "llvm")]
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests read files, run programs and fail by panicking"
)]

#[path = "../../tests/it/compile.rs"]
#[allow(dead_code, reason = "shared with the tests of the compiler, which use all of it")]
mod compile;

use parc::diagnostics::Sink;
use parc::elaborate::Settings;
use parc::search::Space;
use std::path::Path;
use std::process::Command;

/// What each point gives: 0 where it is legal, then step time, memory and model FLOP use.
type Found = Vec<[f64; 4]>;

fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        eprintln!("`{program}` is missing: what it would run is NOT tested");
    }
    there
}

/// Writes the evaluator of `text` into `dir` and gives its name.
fn build(dir: &Path, text: &str) -> String {
    let file = dir.join("job.par");
    std::fs::write(&file, text).unwrap();
    let out = dir.join("out");
    let args = ["parc", "build", file.to_str().unwrap(), "--emit", "evaluator", "--out", out.to_str().unwrap()];
    let code = parc::cli::run(args.map(std::ffi::OsString::from));
    assert_eq!(format!("{code:?}"), format!("{:?}", std::process::ExitCode::SUCCESS));
    let header =
        std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).find(|p| p.extension().is_some_and(|e| e == "h"));
    header.unwrap().file_stem().unwrap().to_string_lossy().into_owned()
}

fn run(command: &mut Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn numbers(text: &str) -> Found {
    let line = |l: &str| l.split(' ').map(|v| v.parse().unwrap()).collect::<Vec<f64>>().try_into().unwrap();
    text.lines().map(line).collect()
}

/// Calls the library from C, once for all points and once for each alone.
fn from_c(dir: &Path, name: &str, points: &[Vec<(String, f64)>]) -> Found {
    let upper = name.to_ascii_uppercase();
    let columns = points[0].iter().map(|(column, _)| {
        let values: Vec<_> =
            points.iter().map(|p| p.iter().find(|(n, _)| n == column).unwrap().1.to_string()).collect();
        format!(
            "  static const double {column}[] = {{{}}};\n  in[PARC_{upper}_IN_{}] = {column};\n",
            values.join(", "),
            column.to_uppercase()
        )
    });
    let n = points.len();
    let text = format!(
        "#include <stdio.h>\n#include \"{name}.h\"\nint main(void) {{\n  enum {{ N = {n} }};\n  const double *in[PARC_{upper}_INS];\n  \
         static double all[PARC_{upper}_OUTS][N], one[PARC_{upper}_OUTS];\n  double *out[PARC_{upper}_OUTS], *alone[PARC_{upper}_OUTS];\n{}  \
         for (int i = 0; i < PARC_{upper}_OUTS; i++) {{ out[i] = all[i]; alone[i] = &one[i]; }}\n  \
         if (parc_{name}_evaluate(N, in, out) != 0) return 1;\n  \
         for (int k = 0; k < N; k++) {{\n    const double *at[PARC_{upper}_INS];\n    \
         for (int i = 0; i < PARC_{upper}_INS; i++) at[i] = in[i] + k;\n    parc_{name}_evaluate(1, at, alone);\n    \
         for (int i = 0; i < PARC_{upper}_OUTS; i++) if (one[i] != all[i][k]) return 2;\n    \
         printf(\"%.17g %.17g %.17g %.17g\\n\", all[PARC_{upper}_OUT_STATUS][k], all[PARC_{upper}_OUT_STEP_TIME][k], \
         all[PARC_{upper}_OUT_PEAK_MEMORY][k], all[PARC_{upper}_OUT_MFU][k]);\n  }}\n  \
         return parc_{name}_schema[0] == '{{' ? 0 : 3;\n}}\n",
        columns.collect::<String>()
    );
    let out = dir.join("out");
    let (source, program) = (dir.join("main.c"), dir.join("main"));
    std::fs::write(&source, text).unwrap();
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"];
    let library = out.join(format!("lib{name}.so"));
    run(Command::new("cc").args(flags).arg(&program).arg(&source).arg("-I").arg(&out).arg(&library));
    numbers(&run(Command::new(&program).env("LD_LIBRARY_PATH", &out)))
}

/// Calls the library from four Python threads, which must agree.
fn from_python(dir: &Path, name: &str, points: &[Vec<(String, f64)>]) -> Found {
    let columns = points[0].iter().map(|(column, _)| {
        let values: Vec<_> =
            points.iter().map(|p| p.iter().find(|(n, _)| n == column).unwrap().1.to_string()).collect();
        format!("'{column}': [{}]", values.join(", "))
    });
    let columns: Vec<_> = columns.collect();
    let text = format!(
        "import sys\nfrom concurrent.futures import ThreadPoolExecutor\nsys.path.insert(0, 'out')\nimport {name} as job\n\
         call = lambda _: job.evaluate(**{{{}}})\nfound = list(ThreadPoolExecutor(4).map(call, range(8)))\n\
         assert all(list(f[c]) == list(found[0][c]) for f in found for c in job.OUTPUTS)\n\
         assert job.STATUS[0] == 'legal' and len(job.evaluate()['status']) == 1\n\
         for row in zip(*[found[0][c] for c in ('status', 'step_time', 'peak_memory', 'mfu')]):\n    print(*map(repr, map(float, row)))\n",
        columns.join(", ")
    );
    std::fs::write(dir.join("main.py"), text).unwrap();
    numbers(&run(Command::new("python3").arg("main.py").current_dir(dir)))
}

/// Builds the evaluator of `text` and asks it at `points`, from both languages.
fn ask(text: &str, points: &[Vec<(String, f64)>]) -> Vec<Found> {
    if !has("cc") {
        return Vec::new();
    }
    let dir = tempfile::tempdir().unwrap();
    let name = build(dir.path(), text);
    let mut found = vec![from_c(dir.path(), &name, points)];
    if has("python3") {
        found.push(from_python(dir.path(), &name, points));
    }
    found
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}

#[test]
fn examples_give_what_a_plan_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    for file in ["llama3_8b.par", "llama3_405b.par", "gpt3_175b.par"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let checked = compile::clean(&text);
        let c = checked.compiled(&[]);
        let inputs = c.graph.inputs().iter().zip(&c.job.point);
        let own: Vec<(String, f64)> = inputs.map(|(i, v)| (i.name.clone(), *v)).collect();
        // A second point, which is illegal: one device more than there are.
        let mut wrong = own.clone();
        for (name, value) in &mut wrong {
            *value = if name == "tp" { 7.0 } else { *value };
        }
        for found in ask(&text, &[own.clone(), wrong.clone(), own]) {
            let plan = [c.roots.step_time, c.roots.peak_memory, c.roots.mfu].map(|id| c.value(id));
            for row in [found[0], found[2]] {
                assert!(
                    row[0].to_bits() == 0 && row[1..].iter().zip(plan).all(|(a, b)| near(*a, b)),
                    "{file}: {row:?} {plan:?}"
                );
            }
            assert!(found[1][0] > 0.0, "{file}: {found:?}");
        }
    }
}

const LAYOUT: &str = "edition 1
layout Mine(tp: Int, pp: Int, dp: Int = devices / (tp * pp)) {
  mesh [pp, dp, tp]
  shard B over dp
  shard [N, K, F, V] over tp else S
  store state over dp
  pipeline over pp { schedule = one_f_one_b, split = SPLIT }
  recompute all
}
train run {
  model = Llama3_8B, cluster = DGX_H100(nodes = 2), sequence = 2048 tok
  layout = Mine(tp in {1, 2, 3, 4, 8}, pp in {1, 2, 4}), batch in {32 seq, 48 seq}
  micro_batch in {1 seq, 2 seq, 3 seq}
  minimize step_time
}
";

#[test]
fn every_point_of_a_space() {
    for split in ["even", "balanced(counting = [embed, head])"] {
        let text = LAYOUT.replace("SPLIT", split);
        let checked = compile::clean(&text);
        let mut sink = Sink::new();
        let none = Settings::default();
        let space = Space::new(&checked.program, checked.job(), &none, &mut sink).unwrap();
        assert_eq!(space.points, 90);
        let (mut points, mut expected) = (Vec::new(), Vec::new());
        for n in 0..space.points {
            let (region, own) = space.locate(n).unwrap();
            let axes = region.axes.iter().zip(region.digits(own));
            points.push(axes.map(|(a, d)| (a.name.clone(), a.value(d) as f64)).collect::<Vec<_>>());
            let settings = region.settle(&none, own);
            let mut sink = Sink::new();
            let compiled =
                parc::driver::compile(&checked.program, &checked.sources, checked.job(), &settings, &mut sink);
            let legal = compiled.filter(|c| c.value(c.metrics.fits) > 0.0);
            expected.push(legal.map(|c| [c.roots.step_time, c.roots.peak_memory, c.roots.mfu].map(|id| c.value(id))));
        }
        let legal = expected.iter().flatten().count();
        assert!((10..80).contains(&legal), "{legal}");
        let full: Vec<Vec<(String, f64)>> =
            points.iter().map(|p| p.iter().cloned().chain([("sequence".to_string(), 2048.0)]).collect()).collect();
        for found in ask(&text, &full) {
            for ((row, expected), point) in found.iter().zip(&expected).zip(&points) {
                match expected {
                    Some(plan) => assert!(
                        row[0].to_bits() == 0 && row[1..].iter().zip(plan).all(|(a, b)| near(*a, *b)),
                        "{split} {point:?}: {row:?} {plan:?}"
                    ),
                    None => assert!(row[0] > 0.0, "{split} {point:?}: {row:?}"),
                }
            }
        }
    }
}
