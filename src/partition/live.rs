//! Gradients alive during a backward: how many bytes they hold at one moment.

use super::TensorId;
use crate::expr;
use indexmap::IndexMap;

/// One term of a gradient and the memory it lies in.
#[derive(Copy, Clone, Debug)]
pub(super) struct Term {
    pub(super) tensor: TensorId,
    /// None for a parameter's: it is added to the gradient buffer, which is counted at rest.
    pub(super) buffer: Option<Buffer>,
}

/// A piece of memory, by position in [`Live`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Buffer(usize);

/// The buffers alive. A sum hands its gradient on without a copy, so that several terms may lie in one.
#[derive(Default, Debug)]
pub(super) struct Live {
    /// Bytes, and how many terms lie in it.
    buffers: Vec<(expr::Id, u32)>,
    /// How many are alive of each size: few sizes, however many buffers.
    sizes: IndexMap<expr::Id, i64>,
}

impl Live {
    /// A new buffer that one term lies in.
    pub(super) fn alloc(&mut self, bytes: expr::Id) -> Buffer {
        self.buffers.push((bytes, 1));
        *self.sizes.entry(bytes).or_default() += 1;
        Buffer(self.buffers.len() - 1)
    }

    /// One more term lies in it.
    pub(super) fn share(&mut self, buffer: Buffer) {
        self.buffers[buffer.0].1 += 1;
    }

    /// One term fewer lies in it.
    pub(super) fn release(&mut self, buffer: Buffer) {
        let (bytes, terms) = &mut self.buffers[buffer.0];
        *terms -= 1;
        if *terms == 0
            && let Some(count) = self.sizes.get_mut(bytes)
        {
            *count -= 1;
        }
    }

    /// Whether only one term lies in it, so that another may be added in place.
    pub(super) fn is_sole(&self, buffer: Buffer) -> bool {
        self.buffers[buffer.0].1 == 1
    }

    /// Bytes of all that are alive.
    pub(super) fn total(&self, exprs: &mut expr::Graph) -> expr::Id {
        let alive = self.sizes.iter().filter(|(_, count)| **count > 0);
        let mut terms = Vec::new();
        for (bytes, count) in alive {
            let count = exprs.int(*count);
            terms.push(exprs.mul(count, *bytes));
        }
        exprs.sum(terms)
    }
}
