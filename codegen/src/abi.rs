//! The C interface, in the order a caller uses it. No panic crosses it.
//!
//! `parc_codegen_version` first; only if it is the caller's own [`parc::emit::evaluator::ABI`], the rest:
//! `parc_codegen_compile` gives a kernel, or null and a text; `parc_codegen_run` evaluates points and may run on many
//! threads at once; `parc_codegen_ir` gives the code as text, `parc_codegen_object` as an object file; the `parc_codegen_free`
//! functions take back what the others gave.
#![expect(unsafe_code, reason = "the border to C: pointers come from a caller in another library")]

use crate::Kernel;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of this interface, of the bytes it takes and of what the operations mean.
#[unsafe(no_mangle)]
pub extern "C" fn parc_codegen_version() -> u32 {
    parc::emit::evaluator::ABI
}

/// Compiles a graph in the format of [`parc::expr::wire`]. Null if it cannot, with the reason in `error`.
///
/// # Safety
/// `bytes` points to `length` bytes; `error` is null or points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parc_codegen_compile(bytes: *const u8, length: usize, error: *mut *mut c_char) -> *mut Kernel {
    // SAFETY: the caller gives `length` readable bytes; a null pointer is replaced before.
    let bytes = if bytes.is_null() { &[][..] } else { unsafe { std::slice::from_raw_parts(bytes, length) } };
    let result = catch_unwind(AssertUnwindSafe(|| Kernel::compile(bytes)))
        .unwrap_or_else(|_| Err("the back end failed; this is a bug in parc".to_owned()));
    match result {
        Ok(kernel) => Box::into_raw(Box::new(kernel)),
        Err(reason) => {
            if !error.is_null() {
                // SAFETY: the caller gives a place for a pointer, which takes the text over.
                unsafe { error.write(text(&reason)) };
            }
            std::ptr::null_mut()
        }
    }
}

/// A text the caller frees.
fn text(text: &str) -> *mut c_char {
    CString::new(text.replace('\0', " ")).unwrap_or_default().into_raw()
}

/// The LLVM IR of a graph in the format of [`parc::expr::wire`], as text. Null if there is none, with the reason in
/// `error`.
///
/// # Safety
/// As of [`parc_codegen_compile`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parc_codegen_ir(bytes: *const u8, length: usize, error: *mut *mut c_char) -> *mut c_char {
    // SAFETY: the caller gives `length` readable bytes; a null pointer is replaced before.
    let bytes = if bytes.is_null() { &[][..] } else { unsafe { std::slice::from_raw_parts(bytes, length) } };
    let result = catch_unwind(AssertUnwindSafe(|| Kernel::ir(bytes)))
        .unwrap_or_else(|_| Err("the back end failed; this is a bug in parc".to_owned()));
    match result {
        Ok(ir) => text(&ir),
        Err(reason) => {
            if !error.is_null() {
                // SAFETY: the caller gives a place for a pointer, which takes the text over.
                unsafe { error.write(text(&reason)) };
            }
            std::ptr::null_mut()
        }
    }
}

/// An object file with the function `symbol` and the text `schema`, for any machine of this kind: its bytes, their number
/// in `length`, the LLVM IR in `note`. Null if there is none, with the reason in `note`.
///
/// # Safety
/// As of [`parc_codegen_compile`]; `symbol` and `schema` are C strings, `length` and `note` point to places for what is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parc_codegen_object(
    bytes: *const u8,
    count: usize,
    symbol: *const c_char,
    schema: *const c_char,
    length: *mut usize,
    note: *mut *mut c_char,
) -> *mut u8 {
    if bytes.is_null() || symbol.is_null() || schema.is_null() || length.is_null() || note.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the caller gives `count` readable bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes, count) };
    // SAFETY: the caller gives C strings.
    let [symbol, schema] = [symbol, schema].map(|s| unsafe { CStr::from_ptr(s) }.to_string_lossy().into_owned());
    let result = catch_unwind(AssertUnwindSafe(|| Kernel::object(bytes, &symbol, &schema)))
        .unwrap_or_else(|_| Err("the back end failed; this is a bug in parc".to_owned()));
    let (said, object) = match result {
        Ok((object, ir)) => (ir, object.into_boxed_slice()),
        Err(reason) => (reason, Box::default()),
    };
    // SAFETY: the caller gives places for a pointer and a number.
    unsafe {
        note.write(text(&said));
        length.write(object.len());
    }
    if object.is_empty() { std::ptr::null_mut() } else { Box::into_raw(object).cast() }
}

/// Frees the bytes of an object file. Null is nothing.
///
/// # Safety
/// They are from [`parc_codegen_object`], as many as it said, and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parc_codegen_free_bytes(bytes: *mut u8, length: usize) {
    if !bytes.is_null() {
        // SAFETY: it was made by `Box::into_raw` of a slice of this length, and the caller gives it up.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes, length)) });
    }
}

/// Evaluates `n` points: `columns` has a pointer to `n` doubles for each input, `out` one for each root. 0 if done.
///
/// # Safety
/// `kernel` is from [`parc_codegen_compile`] and not freed; `columns` and `out` are as said, each column of `out` apart
/// from all others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parc_codegen_run(
    kernel: *const Kernel,
    n: i64,
    columns: *const *const f64,
    out: *const *mut f64,
) -> i32 {
    // SAFETY: the caller gives a living kernel, or null.
    match unsafe { kernel.as_ref() } {
        Some(kernel) => kernel.evaluate(n, columns, out),
        None => 1,
    }
}

/// Frees a kernel. Null is nothing.
///
/// # Safety
/// `kernel` is from [`parc_codegen_compile`], is not in use and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parc_codegen_free(kernel: *mut Kernel) {
    if !kernel.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller gives it up.
        let kernel = unsafe { Box::from_raw(kernel) };
        let _freed = catch_unwind(AssertUnwindSafe(|| drop(kernel)));
    }
}

/// Frees a text. Null is nothing.
///
/// # Safety
/// `text` is from [`parc_codegen_compile`] or [`parc_codegen_ir`] and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parc_codegen_free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it was made by `CString::into_raw`, and the caller gives it up.
        drop(unsafe { CString::from_raw(text) });
    }
}
