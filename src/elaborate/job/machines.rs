//! The machines of a job: its cluster, cut down to the devices it uses.

use super::super::cluster::Cluster;
use super::super::errors;
use super::{Builder, Claim};
use crate::eval::Value;
use crate::hir::walk_expr;
use crate::syntax::ast::{ExprKind, Kind};

impl<'p> Builder<'p, '_, '_> {
    /// The part of the job's cluster that `devices` selects; without it, all of it.
    pub(super) fn machines(&mut self) -> Option<Cluster<'p>> {
        let (instance, span) = self.instance("cluster", Kind::Cluster)?;
        let mut instance = (*instance).clone();
        for (set, n) in &self.settings.values {
            let Some(name) = set.strip_prefix("cluster.") else { continue };
            let params = instance.decl.params.as_deref().unwrap_or_default();
            let Some(param) = params.iter().find(|p| p.name.text == name) else {
                let known: Vec<_> = params.iter().map(|p| format!("cluster.{}", p.name.text)).collect();
                self.eval.sink.error(errors::set_unknown(set, &known, span));
                return None;
            };
            instance.args.insert(param.name.text.clone(), (Value::int(i128::from(*n)), span));
        }
        let cluster = Cluster::new(&mut self.eval, &instance, span)?;
        let Some(field) = self.values.get("devices").cloned() else { return Some(cluster) };
        let used = cluster.select(&mut self.eval, field.expr, &field.env)?;
        Some(cluster.within(&used, span))
    }

    /// Claims that speak of "the device" mean one kind.
    pub(super) fn one_kind(&mut self, cluster: &Cluster<'p>, claims: &[Claim<'p>]) -> Option<()> {
        if cluster.kinds.len() == 1 {
            return Some(());
        }
        let mut found = None;
        for claim in claims {
            walk_expr(claim.value, &mut |e| {
                if let ExprKind::Kind(kind @ (Kind::Device | Kind::Host)) = &e.kind {
                    found = found.or(Some((*kind, e.span)));
                }
            });
        }
        let Some((kind, span)) = found else { return Some(()) };
        self.eval.sink.error(errors::several_devices(kind.keyword(), &cluster.name, &cluster.kind_names(), span));
        None
    }
}
