//! Tables: the types of their columns, and rows that are written out.

use super::hardware::constant;
use super::ty::{Ty, Whole};
use super::{Checker, errors};
use crate::eval::errors as said;
use crate::hir::csv_call;
use crate::syntax::ast::{Arg, Block, Decl, Expr, ExprKind, ItemKind, ParamKind, Ret};

/// One column: a key, or the value.
struct Column<'p> {
    name: &'p str,
    ty: Ty<'p>,
}

impl<'p> Checker<'p, '_> {
    pub(super) fn table(&mut self, decl: &'p Decl, block: &'p Block) {
        let mut columns = Vec::new();
        for param in decl.params.as_deref().unwrap_or_default() {
            let ty = match &param.kind {
                ParamKind::Value { .. } => self.param_ty(param),
                ParamKind::Dim { .. } | ParamKind::Tensor(_) => Ty::Unknown,
            };
            columns.push(Column { name: &param.name.text, ty });
        }
        match &decl.ret {
            Some(Ret::Type(ty)) => columns.push(Column { name: "value", ty: self.type_of(ty) }),
            Some(Ret::Dims(..)) | None => {
                self.error(errors::table_value(&decl.name));
                return;
            }
        }
        self.table_rows(&columns, block);
    }

    /// `rows` or `from` of a table or of a `with` of one.
    fn table_rows(&mut self, columns: &[Column<'p>], block: &'p Block) {
        for item in &block.items {
            let ItemKind::Assign { target, value } = &item.kind else { continue };
            match target.name.text.as_str() {
                "rows" => self.rows(columns, value),
                "from" => self.file(columns, value),
                _ => {}
            }
        }
    }

    fn rows(&mut self, columns: &[Column<'p>], value: &'p Expr) {
        let ExprKind::List(rows) = &value.kind else {
            let found = self.infer(value, Whole::Maybe);
            if !matches!(found, Ty::List(_) | Ty::Unknown) {
                self.error(said::wrong_kind("`rows`", "a list of rows", &found.noun(), value.span));
            }
            return;
        };
        let mut clean = true;
        let mut keys: Vec<Option<f64>> = Vec::with_capacity(rows.len());
        for row in rows {
            let ExprKind::List(cells) = &row.kind else {
                self.infer(row, Whole::Maybe);
                keys.push(None);
                continue;
            };
            for (cell, column) in cells.iter().zip(columns) {
                let want = if let Ty::Number { whole, .. } = &column.ty { *whole } else { Whole::Maybe };
                let found = self.infer(cell, want);
                self.expect(&column.ty, &found, &format!("column `{}`", column.name), cell);
                let same = |u: &crate::units::Unit| matches!(&column.ty, Ty::Number { unit, .. } if unit == u);
                clean &= constant(cell, 0).is_none_or(|(_, u)| same(&u));
            }
            keys.push(cells.first().and_then(|c| constant(c, 0)).map(|(v, _)| v));
        }
        if clean && columns.len() == 2 {
            self.order(columns, rows, &keys);
        }
    }

    /// Keys of rows written out increase; where two neighbours are only swapped, the fix swaps them back.
    fn order(&mut self, columns: &[Column<'p>], rows: &'p [Expr], keys: &[Option<f64>]) {
        let Some(keys) = keys.iter().copied().collect::<Option<Vec<f64>>>() else { return };
        let Some(i) = keys.windows(2).position(|w| w[0] >= w[1]) else { return };
        let Ty::Number { unit, .. } = &columns[0].ty else { return };
        let cell = |row: &'p Expr| if let ExprKind::List(cells) = &row.kind { cells[0].span } else { row.span };
        let mut d = said::rows_unordered(unit, (keys[i], cell(&rows[i])), (keys[i + 1], cell(&rows[i + 1])));
        let mut swapped = keys.clone();
        swapped.swap(i, i + 1);
        if swapped.windows(2).all(|w| w[0] < w[1]) {
            let (first, second) = (rows[i].span, rows[i + 1].span);
            let text = |span| self.sources.snippet(span).to_string();
            d = errors::swap(d, (first, text(first)), (second, text(second)));
        }
        self.error(d);
    }

    /// The columns of `csv("f.csv", key = column("header", UNIT), …)`: units only, the file is read by evaluation.
    fn file(&mut self, columns: &[Column<'p>], value: &'p Expr) {
        let Some((_, _, args)) = csv_call(value) else { return };
        for arg in args {
            let Arg::Named(name, e) = arg else { continue };
            let Some(column) = columns.iter().find(|c| c.name == name.text) else { continue };
            let ExprKind::Call(_, args) = &e.kind else { continue };
            if let [_, Arg::Positional(unit)] = &args[..] {
                let found = self.infer(unit, Whole::Maybe);
                self.expect(&column.ty, &found, &format!("a number of column `{}`", column.name), unit);
            }
        }
    }
}
