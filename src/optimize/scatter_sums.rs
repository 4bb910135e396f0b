//! `scatter_sums`: a sum of which every rank then uses its own piece alone is scattered, not copied to all.
//!
//! By the rules a partial sum is reduced to where its own region wants it. Where that is whole, and every use wants the
//! same piece of it, half of the bytes are for nothing.
//!
//! Law: no more bytes are sent or kept than before; as many collectives.

use super::edit::{Edit, Moving};
use crate::expr::Kind;
use crate::partition::{CollectiveKind, TensorId};

pub(super) fn run(edit: &mut Edit<'_>) {
    let readers = edit.readers();
    for (_, _, steps) in edit.lists() {
        for id in steps {
            let Some(sum) = edit.moving(id) else { continue };
            if sum.what.kind != CollectiveKind::AllReduce || sum.what.maximum {
                continue;
            }
            let users = readers.get(&sum.to).map_or(&[][..], Vec::as_slice);
            let cuts: Option<Vec<_>> = users.iter().map(|u| edit.moving(*u)).collect();
            let Some(cuts) = cuts else { continue };
            let Some(to) = cuts.first().map(|c| c.to) else { continue };
            let alike = |c: &Moving| {
                c.what.kind == CollectiveKind::Slice
                    && c.what.axes == sum.what.axes
                    && edit.place(c.to) == edit.place(to)
            };
            if !cuts.iter().all(alike) {
                continue;
            }
            for (cut, user) in cuts.iter().zip(users) {
                edit.remove(*user);
                if cut.to != to {
                    edit.replace(cut.to, to);
                }
            }
            keep_piece(edit, &sum, to);
            edit.sharded.flow[id].writes[0] = to;
            if let Some(c) = edit.collective(id) {
                c.kind = CollectiveKind::ReduceScatter;
            }
        }
    }
}

/// Where the sum was kept for the backward, its piece is.
fn keep_piece(edit: &mut Edit<'_>, sum: &Moving, to: TensorId) {
    let ranks = edit.ranks(&sum.what.axes);
    for saved in edit.sharded.units.iter_mut().flat_map(|u| &mut u.saved).filter(|s| s.tensor == Some(sum.to)) {
        saved.tensor = Some(to);
        saved.bytes = match edit.exprs.kind(saved.bytes) {
            Kind::Int => edit.exprs.ceil_div(saved.bytes, ranks),
            Kind::Real | Kind::Bool => edit.exprs.div(saved.bytes, ranks),
        };
    }
}
