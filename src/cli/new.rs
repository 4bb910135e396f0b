//! `parc new`: a first file. Asks what, which model and which machines, or takes them as options; writes a commented file
//! that checks clean, and never over another.

use super::project;
use super::{Common, Outcome};
use crate::diagnostics::{Code, Severity, Sink, nearest};
use crate::driver;
use crate::elaborate::Settings;
use crate::resolve::RootFile;
use crate::source::{MemoryWorld, Sources, Span};
use crate::syntax::ast::{Body, ItemKind};
use clap::Args;
use include_dir::{Dir, include_dir};
use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// The template of who presses return.
const USUAL: &str = "megatron-dense";

/// Longest answer that is read, in bytes.
const ANSWER: u64 = 4_096;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The file to write; it must not exist
    file: Option<PathBuf>,
    /// What the file is about; `--list` names the templates
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// A model of the library, such as `Llama3_70B`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Machines of the library, such as `DGX_H100(nodes = 4)`
    #[arg(long, value_name = "CLUSTER")]
    machines: Option<String>,
    /// Name the templates
    #[arg(long)]
    list: bool,
}

/// A template's name and text.
type Template = (&'static str, &'static str);

/// The templates, by name.
fn templates() -> Vec<Template> {
    let name = |f: &'static include_dir::File<'static>| f.path().file_stem()?.to_str();
    let mut all: Vec<Template> = TEMPLATES.files().filter_map(|f| Some((name(f)?, f.contents_utf8()?))).collect();
    all.sort_unstable();
    all
}

/// What a template is for: the first line of its comment.
fn purpose(text: &str) -> &str {
    let line = text.lines().find_map(|l| l.strip_prefix("//! ")).unwrap_or_default();
    line.split_once(". ").map_or(line, |(first, _)| first).trim_end_matches('.')
}

pub(super) fn run(args: &Arguments, common: &Common) -> Outcome {
    let all = templates();
    if args.list {
        let width = all.iter().map(|(n, _)| n.len()).max().unwrap_or(0);
        let lines = all.iter().map(|(name, text)| format!("{name:<width$}  {}\n", purpose(text)));
        super::print(&lines.collect::<String>());
        return Outcome::Fine;
    }
    match fill(args, &all) {
        Ok(plan) => write(&plan, common),
        Err(why) => {
            super::complain(&format!("error: {why}\n"));
            Outcome::Wrong
        }
    }
}

/// A file to write.
struct New {
    file: PathBuf,
    text: String,
    model: Option<String>,
    machines: Option<String>,
}

fn fill(args: &Arguments, all: &[Template]) -> Result<New, String> {
    let asks = std::io::stdin().is_terminal() && super::stderr_is_terminal();
    let (name, text) = match &args.template {
        Some(name) => find(name, all)?,
        None if asks => {
            super::complain("What is the file about?\n");
            for (i, (name, text)) in all.iter().enumerate() {
                super::complain(&format!("  {}  {name:<16}  {}\n", i + 1, purpose(text)));
            }
            let answer = ask("number or name", USUAL)?;
            match answer.parse::<usize>().ok().and_then(|n| all.get(n.checked_sub(1)?)) {
                Some(found) => *found,
                None => find(&answer, all)?,
            }
        }
        None => {
            return Err("`parc new` asks on a terminal only; give --template NAME, and --model and --machines where \
                        the template's are not yours (`parc new --list` names the templates)"
                .into());
        }
    };
    // Who gave the template on the command line has said what is to be said.
    let asks = asks && args.template.is_none();
    let (model, machines) = written(text);
    let given = |value: &Option<String>, what: &str, default: &str| match value {
        Some(v) => Ok(Some(v.clone())),
        None if asks => ask(what, default).map(|a| Some(a).filter(|a| a != default)),
        None => Ok(None),
    };
    let model = given(&args.model, "which model", &model)?;
    let machines = given(&args.machines, "which machines", &machines)?;
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.par")));
    Ok(New { file, text: text.to_string(), model, machines })
}

fn find(name: &str, all: &[Template]) -> Result<Template, String> {
    all.iter().find(|(n, _)| *n == name).copied().ok_or_else(|| {
        let near = nearest(name, all.iter().map(|(n, _)| *n)).map(|n| format!("; `{n}` is one")).unwrap_or_default();
        format!("no template `{}`{near} (`parc new --list` names them)", name.escape_debug())
    })
}

/// One line from the terminal; `default` where it is empty.
fn ask(what: &str, default: &str) -> Result<String, String> {
    super::complain(&format!("{what} [{default}]: "));
    let mut line = String::new();
    let read = std::io::stdin().lock().take(ANSWER).read_line(&mut line).map_err(|e| format!("cannot read: {e}"))?;
    if read == 0 {
        return Err("the input ended; nothing was written".into());
    }
    let line = line.trim();
    Ok(if line.is_empty() { default.to_string() } else { line.to_string() })
}

/// Where the job of `text` names its model and its cluster.
fn places(text: &str) -> (Option<Span>, Option<Span>) {
    let mut sources = Sources::new();
    let file = sources.add("new.par", text.to_string(), false);
    let tree = crate::syntax::parse(&sources, file, &mut Sink::new());
    let field = |wanted: &str| {
        tree.entries.iter().find_map(|e| {
            let crate::syntax::ast::Entry::Decl(d) = e else { return None };
            let Body::Block(block) = &d.body else { return None };
            block.items.iter().find_map(|item| match &item.kind {
                ItemKind::Assign { target, value } if target.name.text == wanted => Some(value.span),
                _ => None,
            })
        })
    };
    (field("model"), field("cluster"))
}

/// The model and the machines a template names.
fn written(text: &str) -> (String, String) {
    let (model, cluster) = places(text);
    let part = |span: Option<Span>| span.and_then(|s| text.get(s.start as usize..s.end as usize)).unwrap_or_default();
    (part(model).to_string(), part(cluster).to_string())
}

/// The template with the user's model, machines and file name in it.
fn filled(new: &New, shown: &str) -> String {
    let (model, cluster) = places(&new.text);
    let mut edits: Vec<(Span, &String)> = [(model, &new.model), (cluster, &new.machines)]
        .into_iter()
        .filter_map(|(span, value)| Some((span?, value.as_ref()?)))
        .collect();
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut text = new.text.clone();
    for (span, value) in edits {
        text.replace_range(span.start as usize..span.end as usize, &value.replace(char::is_control, " "));
    }
    let lines = text.lines().map(|l| if l.starts_with("//!") { l.replace("FILE", shown) } else { l.to_string() });
    lines.map(|l| l + "\n").collect()
}

fn write(new: &New, common: &Common) -> Outcome {
    let shown = new.file.display().to_string();
    if new.file.symlink_metadata().is_ok() {
        super::complain(&format!("error: `{shown}` exists, and is not written over\n"));
        return Outcome::Wrong;
    }
    let text = filled(new, &shown);
    if !clean(&shown, &text, common) {
        super::complain("nothing was written\n");
        return Outcome::Wrong;
    }
    if let Err(why) = create(&new.file, &text) {
        let why = match why.kind() {
            ErrorKind::AlreadyExists => "it exists, and is not written over".to_string(),
            _ => why.to_string(),
        };
        super::complain(&format!("error: cannot write `{shown}`: {why}\n"));
        return Outcome::Wrong;
    }
    super::print(&format!("wrote {shown}\nnext: parc plan {shown}\n"));
    Outcome::Fine
}

/// Whether the file to write has no mistake; its messages are printed. What this version does not run yet is none.
fn clean(shown: &str, text: &str, common: &Common) -> bool {
    let path = PathBuf::from("new.par");
    let world = MemoryWorld::new([(path.clone(), text.to_string())]);
    let roots = [RootFile { shown: shown.to_string(), path }];
    let (mut sources, mut sink) = (Sources::new(), Sink::new());
    let program = driver::front(&mut sources, &world, &roots, &mut sink);
    if !sink.has_errors() {
        for job in program.jobs() {
            driver::check_job(&program, &sources, job, &Settings::default(), &mut sink);
        }
    }
    let list = sink.finish();
    let serious: Vec<_> = list.into_iter().filter(|d| d.code != Code::NotSupported).collect();
    project::report(&sources, &serious, common);
    serious.iter().all(|d| d.code.info().severity != Severity::Error)
}

fn create(file: &Path, text: &str) -> std::io::Result<()> {
    let mut out = OpenOptions::new().write(true).create_new(true).open(file)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()
}
