//! One job to ops over named dimensions, on a cluster, under a layout.
//!
//! In: the resolved program and the name of a job. Out: a [`Job`], whose sizes are nodes of the expression graph
//! over the layout's parameters, and the point those parameters have in the file.

mod cluster;
pub(crate) mod errors;
mod flatten;
mod job;
mod layout;
mod model;
mod numerics;
mod operators;

pub use cluster::{Cluster, Level};
pub use job::{AddedItem, Claim, ClaimKind, Duty, DutyKind, Job, Length, Parameter, Settings, elaborate};
pub use layout::{PipelineItem, Split};
pub use model::library_model;
pub use numerics::{Dtype, Numerics};

use crate::eval::{Evaluator, Value};
use crate::hir::DeclId;
use crate::source::Span;
use crate::syntax::ast::{Kind, ParamKind};

/// Elaborates a model or a cluster that no job need use, to report what is wrong with it. One with a parameter that
/// has no default has no shape yet, so it is left to the jobs that give one.
pub fn alone<'p>(eval: &mut Evaluator<'p, '_>, id: DeclId, kind: Kind, span: Span) {
    let Value::Instance(instance) = eval.entry(id, span) else { return };
    let params = instance.decl.params.as_deref().unwrap_or_default();
    let given = |name: &str| instance.args.contains_key(name);
    let open = params.iter().any(|p| match &p.kind {
        ParamKind::Value { default, .. } => default.is_none() && !given(&p.name.text),
        ParamKind::Dim { .. } | ParamKind::Tensor(_) => true,
    });
    if open || instance.decl.kind != kind {
        return;
    }
    match kind {
        Kind::Model => drop(library_model(eval, &instance)),
        _ => drop(Cluster::new(eval, &instance, span)),
    }
}
