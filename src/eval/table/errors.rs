//! Wording of what goes wrong with tables.

use super::{Axis, Table};
use crate::diagnostics::{Applicability, Code, Diagnostic, nearest};
use crate::limits;
use crate::source::Span;
use crate::syntax::ast::Name;
use crate::units::{Unit, show};

pub(super) fn column_type(column: &str, table: &Name) -> Diagnostic {
    Diagnostic::new(
        Code::KindMismatch,
        format!("`{column}` of table `{}` needs the type of a number", table.text),
        table.span,
        format!("`{column}` has none"),
    )
    .help("keys and value have a type each: `table busbw(size: Bytes) -> Bandwidth { … }`")
}

pub(super) fn key_count(found: usize, limit: usize, table: &Name) -> Diagnostic {
    if found > limit {
        return Diagnostic::over_limit("keys of a table", found.to_string(), limit.to_string(), table.span);
    }
    Diagnostic::new(Code::TableRows, format!("table `{}` has no key", table.text), table.span, "nothing to look up by")
        .help("write its keys as parameters: `table busbw(size: Bytes) -> Bandwidth { … }`")
}

pub(super) fn interpolation(span: Span) -> Diagnostic {
    Diagnostic::new(Code::KindMismatch, "this is no way to interpolate", span, "not one of the four")
        .note("`linear`, `nearest`, `log_linear` (over logarithms of the keys), `log_log` (of keys and values)")
}

pub(super) fn outside(span: Span) -> Diagnostic {
    Diagnostic::new(Code::KindMismatch, "this does not say what lies outside of a table", span, "not one of the three")
        .note("`error`, `clamp(warn = true)` or `clamp(warn = false)`, `extrapolate`")
}

pub(super) fn row_shape(columns: &[&str], span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::TableRows,
        format!("a row of this table is a list of {} cells", columns.len()),
        span,
        "not such a row",
    )
    .note(format!("its cells are {}", columns.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ")))
}

pub(super) fn row_count(found: usize, span: Span) -> Diagnostic {
    if found == 0 {
        return Diagnostic::new(Code::TableRows, "a table needs a row", span, "no rows");
    }
    Diagnostic::over_limit("rows of a table", found.to_string(), limits::TABLE_ROWS.to_string(), span)
}

pub(super) fn row_twice(again: Span, first: Span) -> Diagnostic {
    Diagnostic::new(Code::TableRows, "two rows have the same keys", again, "the same keys again")
        .label(first, "first given here")
}

pub(super) fn grid_incomplete(axes: &[(&str, usize)], rows: usize, span: Span) -> Diagnostic {
    let product: u128 = axes.iter().map(|(_, n)| *n as u128).product();
    let sizes: Vec<String> = axes.iter().map(|(name, n)| format!("{n} of `{name}`")).collect();
    Diagnostic::new(
        Code::TableRows,
        format!("the rows are no full grid: {rows} rows for {product} combinations of keys"),
        span,
        format!("{} missing", rows_text(product - rows as u128)),
    )
    .note(format!("the keys take {}: each combination needs one row", sizes.join(", ")))
}

/// "1 row is", "3 rows are".
fn rows_text(n: u128) -> String {
    if n == 1 { "1 row is".into() } else { format!("{n} rows are") }
}

pub(super) fn log_of_zero(span: Span) -> Diagnostic {
    Diagnostic::new(Code::OutOfRange, "a logarithm needs a number above 0", span, "0 or less")
        .help("`interpolate = linear` takes any number")
}

pub(super) fn source_form(columns: &[&str], span: Span) -> Diagnostic {
    let args: Vec<String> = columns.iter().map(|c| format!("{c} = column(\"…\", UNIT)")).collect();
    Diagnostic::new(Code::ArgumentWrong, "this does not say where the rows come from", span, "not read")
        .help(format!("write `from = csv(\"file.csv\", {})`", args.join(", ")))
}

pub(super) fn column_missing(column: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::ArgumentWrong,
        format!("nothing says which column of the file is `{column}`"),
        span,
        format!("`{column} = column(…)` is missing"),
    )
}

pub(super) fn column_unit(column: &str, unit: &Unit, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::UnitMismatch,
        format!("the numbers of column `{column}` need a unit of {}", unit.noun()),
        span,
        "a unit is missing",
    )
    .help(format!("say what a bare 1 in the file is, such as `column(\"…\", {})`", example(unit)))
}

/// One of a unit as a user would write it.
fn example(unit: &Unit) -> String {
    if *unit == Unit::bandwidth() { "1 GB/s".into() } else { format!("1 {unit}") }
}

pub(super) fn header_missing(header: &str, path: &str, headers: &[String], span: Span) -> Diagnostic {
    let d = Diagnostic::new(
        Code::NameUnknown,
        format!("`{path}` has no column `{header}`"),
        span,
        "not in the file's first line",
    );
    let shown = headers.iter().take(12).map(|h| format!("`{h}`")).collect::<Vec<_>>().join(", ");
    match nearest(header, headers.iter().map(String::as_str)) {
        Some(near) => d.help(format!("a column `{near}` exists")),
        None => d.note(format!("its columns are {shown}")),
    }
}

pub(super) fn cell(cell: &str, header: &str, path: &str, line: usize, span: Span) -> Diagnostic {
    let shown: String = cell.chars().take(40).collect();
    let what = if shown.is_empty() { "an empty cell".to_string() } else { format!("`{shown}`") };
    Diagnostic::new(
        Code::TableRows,
        format!("line {line} of `{path}` has {what} for `{header}`, which is no number"),
        span,
        "read from this column",
    )
}

pub(super) fn too_many_points(table: &Table, limit: usize, span: Span) -> Diagnostic {
    super::super::errors::not_supported(
        &format!(
            "asking `{}` of {} points for what depends on the layout (at most {limit})",
            table.name,
            table.values.len()
        ),
        span,
    )
}

/// "64 KiB to 1 GiB".
fn covered(axis: &Axis) -> String {
    let (lo, hi) = axis.ends();
    format!("{} to {}", show(lo, &axis.unit), show(hi, &axis.unit))
}

pub(super) fn outside_table(table: &Table, axis: &Axis, key: f64, span: Span) -> Diagnostic {
    let d = Diagnostic::new(
        Code::OutOfRange,
        format!("`{}` has no value at {}", table.name, show(key, &axis.unit)),
        span,
        format!("`{}` is {}", axis.name, show(key, &axis.unit)),
    )
    .note(format!("its rows cover {} from {}", axis.name, covered(axis)));
    match table.outside {
        Some(at) => d.fix("take the value at the border outside", at, "clamp(warn = false)", Applicability::Unsure),
        None => d.help("`outside = clamp(warn = true)` takes the value at the border, `extrapolate` goes on"),
    }
}

pub(super) fn clamped(table: &Table, axis: &Axis, key: f64, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::TableClamped,
        format!("`{}` is asked at {}, outside its rows", table.name, show(key, &axis.unit)),
        span,
        "the value at the border is taken",
    )
    .note(format!("its rows cover {} from {}", axis.name, covered(axis)))
    .help("`outside = clamp(warn = false)` takes it silently")
}
