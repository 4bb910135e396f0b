//! Tables: measured points over one or several keys, and what lies between and beyond them.
//!
//! In: a `table` with its rows, or the text of the file they are in. Out: a full grid of numbers in base units. What is
//! wrong with the rows is reported once, where they are.

mod csv;
mod errors;
mod lookup;

pub use lookup::Inside;

use super::{Env, Evaluator, Given, Instance, Num, Quantity, Value, Wanted, type_wanted};
use crate::expr::scalar;
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::{self, Block, Body, Expr, ExprKind, ItemKind, ParamKind, Ret};
use crate::units::Unit;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::rc::Rc;

/// Keys of one table: each doubles the rows around a key.
const MAX_KEYS: usize = 8;

/// What lies between two rows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Between {
    /// The value of the nearer row; of two equally near, the lower.
    Nearest,
    /// A straight line.
    Linear,
    /// A straight line over the logarithms of the keys.
    LogLinear,
    /// The same, of the logarithms of the values.
    LogLog,
}

/// What lies beyond the rows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Beyond {
    /// Nothing: asking is an error.
    Error,
    /// The value at the border; with a warning where asked for.
    Clamp {
        /// Whether to say so.
        warn: bool,
    },
    /// The line through the last two rows.
    Extrapolate,
}

/// The points of one key, strictly increasing, in base units.
#[derive(Clone, Debug)]
struct Axis {
    name: SmolStr,
    unit: Unit,
    points: Vec<f64>,
    /// The points as lines are drawn through them: their logarithms, where it says so.
    scaled: Vec<f64>,
}

/// A table, ready to be asked.
#[derive(Clone, Debug)]
pub struct Table {
    name: SmolStr,
    axes: Vec<Axis>,
    /// By the axes in order, the last fastest; logarithms under `log_log`.
    values: Vec<f64>,
    unit: Unit,
    between: Between,
    beyond: Beyond,
    /// The value of `outside`, for a fix; none where it is not written.
    outside: Option<Span>,
}

impl Table {
    /// The keys of a table of one key, each with its share of the values, and the keys' unit; none for other tables and
    /// where a value is below 0.
    pub(in crate::eval) fn shares(&self) -> Option<(Vec<(f64, f64)>, Unit)> {
        let [axis] = &self.axes[..] else { return None };
        let total: f64 = self.values.iter().sum();
        if self.between == Between::LogLog || self.values.iter().any(|v| *v < 0.0) || total <= 0.0 {
            return None;
        }
        let shares = axis.points.iter().zip(&self.values).map(|(p, v)| (*p, v / total)).collect();
        Some((shares, axis.unit.clone()))
    }
}

/// One column: a key or the value.
struct Column {
    name: SmolStr,
    wanted: Wanted,
}

/// A row with the place of each cell.
type Row = Vec<(f64, Span)>;

impl<'p> Evaluator<'p, '_> {
    /// The table of `instance`, built when first asked; `None` if it is wrong, which was reported.
    pub fn table(&mut self, instance: &Instance<'p>) -> Option<Rc<Table>> {
        // Blocks that see names of a function may differ from one call to the next.
        let fixed = instance.with.iter().all(|g| g.env.outer.is_none());
        let own = if let Body::Block(b) = &instance.decl.body { Some(b) } else { None };
        let key: Vec<*const Block> =
            own.into_iter().chain(instance.with.iter().map(|g| g.block)).map(std::ptr::from_ref).collect();
        if fixed && let Some(table) = self.tables.get(&key) {
            return table.clone();
        }
        let table = self.build(instance).map(Rc::new);
        if fixed {
            self.tables.insert(key, table.clone());
        }
        table
    }

    fn build(&mut self, instance: &Instance<'p>) -> Option<Table> {
        let decl = instance.decl;
        let Body::Block(block) = &decl.body else { return None };
        let base = Given { block, env: Env::top(instance.id.module) };
        let mut fields: IndexMap<&'p str, (&'p Expr, Rc<Env<'p>>)> = IndexMap::new();
        for given in std::iter::once(&base).chain(&instance.with) {
            for item in &given.block.items {
                if let ItemKind::Assign { target, value } = &item.kind {
                    // Rows are in the file or in a file of their own: the later word holds.
                    let other = if target.name.text == "rows" { "from" } else { "rows" };
                    if matches!(target.name.text.as_str(), "rows" | "from") {
                        fields.swap_remove(other);
                    }
                    fields.insert(target.name.text.as_str(), (value, Rc::clone(&given.env)));
                }
            }
        }
        let columns = self.columns(decl)?;
        let between = match fields.get("interpolate") {
            Some((e, _)) => self.between(e)?,
            None => Between::Linear,
        };
        let beyond = match fields.get("outside") {
            Some((e, env)) => self.beyond(e, env)?,
            None => Beyond::Error,
        };
        let outside = fields.get("outside").map(|(e, _)| e.span);
        let (rows, at) = match (fields.get("rows").cloned(), fields.get("from").cloned()) {
            (Some((e, env)), _) => (self.rows(e, &env, &columns)?, e.span),
            (None, Some((e, env))) => (self.file_rows(e, &env, &columns)?, e.span),
            (None, None) => {
                self.sink.error(super::errors::missing_field(
                    "rows",
                    &format!("table `{}`", decl.name.text),
                    decl.name.span,
                ));
                return None;
            }
        };
        let logs = matches!(between, Between::LogLinear | Between::LogLog);
        // The value's logarithm is taken under `log_log` alone.
        let scaled = columns.len() - usize::from(between != Between::LogLog);
        if logs && let Some((_, bad)) = rows.iter().flat_map(|r| &r[..scaled]).find(|(v, _)| *v <= 0.0) {
            self.sink.error(errors::log_of_zero(*bad));
            return None;
        }
        let (axes, values) = self.grid(&columns, &rows, at, logs)?;
        let values = if between == Between::LogLog { values.into_iter().map(scalar::log2).collect() } else { values };
        let unit = unit_of(&columns.last()?.wanted);
        Some(Table { name: decl.name.text.clone(), axes, values, unit, between, beyond, outside })
    }

    /// Keys and value of the head.
    fn columns(&mut self, decl: &'p ast::Decl) -> Option<Vec<Column>> {
        let mut out = Vec::new();
        for param in decl.params.as_deref().unwrap_or_default() {
            let wanted = match &param.kind {
                ParamKind::Value { ty: Some(ty), .. } => self.type_of(ty),
                ParamKind::Value { ty: None, .. } | ParamKind::Dim { .. } | ParamKind::Tensor(_) => Wanted::Any,
            };
            out.push(Column { name: param.name.text.clone(), wanted });
        }
        let wanted = match &decl.ret {
            Some(Ret::Type(ty)) => self.type_of(ty),
            Some(Ret::Dims(..)) | None => Wanted::Any,
        };
        out.push(Column { name: "value".into(), wanted });
        if let Some(bad) = out.iter().find(|c| c.wanted == Wanted::Any) {
            self.sink.error(errors::column_type(&bad.name, &decl.name));
            return None;
        }
        if !(2..=MAX_KEYS + 1).contains(&out.len()) {
            self.sink.error(errors::key_count(out.len() - 1, MAX_KEYS, &decl.name));
            return None;
        }
        Some(out)
    }

    fn between(&mut self, e: &Expr) -> Option<Between> {
        Some(match word(e) {
            Some("nearest") => Between::Nearest,
            Some("linear") => Between::Linear,
            Some("log_linear") => Between::LogLinear,
            Some("log_log") => Between::LogLog,
            _ => {
                self.sink.error(errors::interpolation(e.span));
                return None;
            }
        })
    }

    fn beyond(&mut self, e: &'p Expr, env: &Rc<Env<'p>>) -> Option<Beyond> {
        let (callee, args) = match &e.kind {
            ExprKind::Call(f, args) => (&**f, &args[..]),
            _ => (e, &[][..]),
        };
        Some(match (word(callee), args) {
            (Some("error"), []) => Beyond::Error,
            (Some("extrapolate"), []) => Beyond::Extrapolate,
            (Some("clamp"), []) => Beyond::Clamp { warn: true },
            (Some("clamp"), [ast::Arg::Named(n, v)]) if n.text == "warn" => match self.eval(v, env, &Wanted::Any) {
                Value::Bool(super::Truth::Known(warn)) => Beyond::Clamp { warn },
                _ => {
                    self.sink.error(errors::outside(e.span));
                    return None;
                }
            },
            _ => {
                self.sink.error(errors::outside(e.span));
                return None;
            }
        })
    }

    /// `rows = [[…], …]`
    fn rows(&mut self, e: &'p Expr, env: &Rc<Env<'p>>, columns: &[Column]) -> Option<Vec<Row>> {
        let written = if let ExprKind::List(list) = &e.kind { Some(list) } else { None };
        let rows = match self.eval(e, env, &Wanted::Any) {
            Value::List(rows) => rows,
            Value::Error(_) => return None,
            other => {
                let noun = other.noun();
                self.sink.error(super::errors::wrong_kind("`rows`", "a list of rows", &noun, e.span));
                return None;
            }
        };
        let mut out = Vec::with_capacity(rows.len());
        for (i, row) in rows.iter().enumerate() {
            let place = written.and_then(|w| w.get(i));
            let at = place.map_or(e.span, |p| p.span);
            let cells = match row {
                Value::List(cells) if cells.len() == columns.len() => cells,
                Value::Error(_) => return None,
                _ => {
                    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
                    self.sink.error(errors::row_shape(&names, at));
                    return None;
                }
            };
            let mut numbers = Vec::with_capacity(cells.len());
            for (j, (cell, column)) in cells.iter().zip(columns).enumerate() {
                let span = match place.map(|p| &p.kind) {
                    Some(ExprKind::List(list)) => list.get(j).map_or(at, |e| e.span),
                    _ => at,
                };
                let what = format!("column `{}`", column.name);
                let value = self.require(cell.clone(), &column.wanted, &what, span);
                match value.as_f64().filter(|v| v.is_finite()) {
                    Some(v) => numbers.push((v, span)),
                    None if matches!(value, Value::Error(_)) => return None,
                    None => {
                        let noun = value.noun();
                        self.sink.error(super::errors::wrong_kind(&what, "a known number", &noun, span));
                        return None;
                    }
                }
            }
            out.push(numbers);
        }
        Some(out)
    }

    /// Rows to a grid: the points of each key, and the values in order.
    fn grid(&mut self, columns: &[Column], rows: &[Row], at: Span, logs: bool) -> Option<(Vec<Axis>, Vec<f64>)> {
        if rows.is_empty() || rows.len() > limits::TABLE_ROWS {
            self.sink.error(errors::row_count(rows.len(), at));
            return None;
        }
        let keys = columns.len() - 1;
        if keys == 1
            && let Some(pair) = rows.windows(2).find(|w| w[0][0].0 >= w[1][0].0)
        {
            let unit = unit_of(&columns[0].wanted);
            self.sink.error(super::errors::rows_unordered(&unit, pair[0][0], pair[1][0]));
            return None;
        }
        let mut axes = Vec::with_capacity(keys);
        for (k, column) in columns[..keys].iter().enumerate() {
            let mut points: Vec<f64> = rows.iter().map(|r| r[k].0).collect();
            points.sort_by(f64::total_cmp);
            points.dedup_by(|a, b| a.total_cmp(b).is_eq());
            let scaled = if logs { points.iter().map(|p| scalar::log2(*p)).collect() } else { points.clone() };
            axes.push(Axis { name: column.name.clone(), unit: unit_of(&column.wanted), points, scaled });
        }
        let full = axes.iter().try_fold(1_usize, |n, a| n.checked_mul(a.points.len())).unwrap_or(usize::MAX);
        let mut values: Vec<Option<(f64, Span)>> = vec![None; full.min(rows.len())];
        for row in rows {
            let mut place = 0;
            for (axis, (key, _)) in axes.iter().zip(row) {
                let i = axis.points.partition_point(|p| p.total_cmp(key).is_lt());
                place = place * axis.points.len() + i;
            }
            match values.get_mut(place) {
                Some(Some((_, first))) => {
                    self.sink.error(errors::row_twice(row[0].1, *first));
                    return None;
                }
                Some(slot) => *slot = Some((row[keys].0, row[0].1)),
                None => {}
            }
        }
        if full != rows.len() {
            let sizes: Vec<(&str, usize)> = axes.iter().map(|a| (a.name.as_str(), a.points.len())).collect();
            self.sink.error(errors::grid_incomplete(&sizes, rows.len(), at));
            return None;
        }
        Some((axes, values.into_iter().map(|v| v.map_or(0.0, |(v, _)| v)).collect()))
    }

    fn type_of(&self, ty: &ast::Type) -> Wanted {
        match self.user_type(&ty.name.text) {
            Some(unit) => Wanted::Quantity(Unit::base(crate::units::Base::User(unit))),
            None => type_wanted(ty),
        }
    }

    /// `value` in the unit of its column, from a bare number of a file.
    fn scaled(bare: f64, unit: &Quantity) -> f64 {
        bare * match unit.num {
            Num::Int(n) => n as f64,
            Num::Real(x) => x,
            Num::Sym(_) => f64::NAN,
        }
    }
}

fn unit_of(wanted: &Wanted) -> Unit {
    if let Wanted::Quantity(u) = wanted { u.clone() } else { Unit::none() }
}

/// A name standing alone.
fn word(e: &Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Path(path) if path.len() == 1 => Some(&path[0].text),
        _ => None,
    }
}
