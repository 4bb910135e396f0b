//! `parc build --emit evaluator`: the job as a shared library, linked by the system's C compiler.

use super::build::{size, written};
use super::errors;
use super::project::Project;
use crate::emit::Artifact;
use crate::search::{self, Space};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Writes the evaluator of the only job into the folder `out`; what was written, as text.
pub(super) fn build(p: &mut Project, out: &Path, force: bool) -> Option<String> {
    let id = p.jobs[0];
    let space = Space::new(&p.program, id, &p.settings, &mut p.sink)?;
    let task = super::search::task(&p.program, &p.sources, id, &p.settings, super::search::cores());
    let evaluator = search::evaluator(task, &space, &mut p.sink)?;
    let span = p.program.entry(id).name().span;
    let mut files = match evaluator.files() {
        Ok(files) => files,
        Err(why) => {
            p.sink.error(errors::not_compiled(why, span));
            return None;
        }
    };
    let name = evaluator.symbol();
    let object = files.get(Path::new(&format!("{name}.o"))).map_or(&[][..], |a| &a.bytes);
    match link(object) {
        Ok(bytes) => files.insert(format!("lib{name}.so").into(), Artifact { bytes, executable: true }),
        Err(why) => {
            p.sink.error(errors::not_linked(&why, span));
            return None;
        }
    };
    written(p, &files, out, force)?;
    let mut text = format!("wrote {}/, an evaluator of {}:\n", out.display(), evaluator.job);
    for (path, artifact) in &files {
        let _ = writeln!(text, "  {:<20} {:>8}", path.display(), size(artifact.bytes.len()));
    }
    let _ = writeln!(text, "{} columns in, {} out: README.md", evaluator.inputs.len(), evaluator.outputs.len());
    Some(text)
}

/// The bytes of a shared library of one object file.
fn link(object: &[u8]) -> Result<Vec<u8>, String> {
    let compiler = std::env::var_os("CC").filter(|cc| !cc.is_empty()).unwrap_or_else(|| "cc".into());
    let shown = compiler.to_string_lossy().into_owned();
    let work = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (from, to) = (work.path().join("evaluator.o"), work.path().join("evaluator.so"));
    std::fs::write(&from, object).map_err(|e| e.to_string())?;
    let run = Command::new(&compiler).arg("-shared").arg("-o").arg(&to).arg(&from).output();
    let run = run.map_err(|e| format!("`{shown}` cannot be run: {e}"))?;
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr);
        return Err(format!("`{shown} -shared` says: {}", said.trim().lines().last().unwrap_or("nothing")));
    }
    std::fs::read(&to).map_err(|e| e.to_string())
}
