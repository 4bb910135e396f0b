//! `share_copies`: a tensor that two regions of a unit bring to one place is brought once.
//!
//! By the rules a copy serves its region. Two regions that need the same, such as attention and the MLP of a parallel
//! block, or the recomputed forward and the backward, gather twice.
//!
//! Law: the collectives after are some of those before, so that no bytes are sent that were not. In the backward the copy
//! lives from its first use to its last; it is counted as if it lived throughout.

use super::edit::Edit;
use crate::layout::AxisId;
use crate::partition::{CollectiveKind, Phase, Placement, TensorId};
use indexmap::IndexMap;
use smallvec::SmallVec;

/// What makes two moves the same: kind, axes, what is moved and where to.
type Key = (CollectiveKind, SmallVec<[AxisId; 2]>, TensorId, Placement);

pub(super) fn run(edit: &mut Edit<'_>) {
    for (unit, phase, steps) in edit.lists() {
        let mut made: IndexMap<Key, (TensorId, bool)> = IndexMap::new();
        for id in steps {
            // A ring passes its blocks by; there is no copy to share.
            let Some(m) = edit.moving(id).filter(|m| m.what.kind != CollectiveKind::Permute) else { continue };
            let key = (m.what.kind, m.what.axes.clone(), m.from, edit.place(m.to).clone());
            let Some((first, counted)) = made.get_mut(&key) else {
                made.insert(key, (m.to, false));
                continue;
            };
            let (first, lived) = (*first, std::mem::replace(counted, true));
            edit.replace(m.to, first);
            edit.remove(id);
            if phase == Phase::Backward && m.what.kind == CollectiveKind::AllGather && !lived {
                // The wire's bytes as bytes in memory.
                let width = edit.exprs.real(edit.context.bytes.act / edit.context.bytes.wire);
                let bytes = edit.exprs.mul(m.what.bytes, width);
                edit.lives_longer(unit, bytes);
            }
        }
    }
}
