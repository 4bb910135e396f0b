//! The back end's library: finding it, opening it, calling it. The only place of the compiler with foreign calls.
#![expect(unsafe_code, reason = "calls into a library of C functions, behind a version check")]

use super::{ABI, LIBRARY_VARIABLE, Unavailable};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

type Version = unsafe extern "C" fn() -> u32;
type Compile = unsafe extern "C" fn(*const u8, usize, *mut *mut c_char) -> *mut c_void;
type Run = unsafe extern "C" fn(*const c_void, i64, *const *const f64, *const *mut f64) -> i32;
type Ir = unsafe extern "C" fn(*const u8, usize, *mut *mut c_char) -> *mut c_char;
type Object =
    unsafe extern "C" fn(*const u8, usize, *const c_char, *const c_char, *mut usize, *mut *mut c_char) -> *mut u8;
type FreeBytes = unsafe extern "C" fn(*mut u8, usize);
type Free = unsafe extern "C" fn(*mut c_void);
type FreeText = unsafe extern "C" fn(*mut c_char);

/// The library's functions. It is never closed, so they stay.
#[derive(Copy, Clone, Debug)]
struct Functions {
    compile: Compile,
    run: Run,
    ir: Ir,
    object: Object,
    free_bytes: FreeBytes,
    free: Free,
    free_text: FreeText,
}

/// A kernel of the library.
#[derive(Debug)]
pub(super) struct Code {
    kernel: *mut c_void,
    functions: Functions,
    inputs: usize,
    roots: usize,
}

// SAFETY: a kernel is code and constants that nobody writes; `run` may be called from many threads at once, and `free`
// from any one, which `drop` makes the last.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the kernel is from `compile` and this is its only `free`.
        unsafe { (self.functions.free)(self.kernel) }
    }
}

/// The library's functions, opened at the first call.
fn library() -> Result<Functions, Unavailable> {
    static LIBRARY: OnceLock<Result<Functions, Unavailable>> = OnceLock::new();
    LIBRARY.get_or_init(|| open(places())).clone()
}

/// Compiles the bytes of a graph of so many inputs and roots.
pub(super) fn compile(bytes: &[u8], inputs: usize, roots: usize) -> Result<Code, Unavailable> {
    let functions = library()?;
    let mut text = std::ptr::null_mut();
    // SAFETY: the version was checked; the pointers are to `bytes` and to `text`.
    let kernel = unsafe { (functions.compile)(bytes.as_ptr(), bytes.len(), &raw mut text) };
    if !kernel.is_null() {
        return Ok(Code { kernel, functions, inputs, roots });
    }
    Err(Unavailable::Refused(take(functions, text).unwrap_or_else(|| "no reason given".to_owned())))
}

/// The LLVM IR of the bytes of a graph.
pub(super) fn ir(bytes: &[u8]) -> Result<String, Unavailable> {
    let functions = library()?;
    let mut error = std::ptr::null_mut();
    // SAFETY: the version was checked; the pointers are to `bytes` and to `error`.
    let text = unsafe { (functions.ir)(bytes.as_ptr(), bytes.len(), &raw mut error) };
    let reason = || take(functions, error).unwrap_or_else(|| "no reason given".to_owned());
    take(functions, text).ok_or_else(|| Unavailable::Refused(reason()))
}

/// The object file of the bytes of a graph, with its function's name and a text to hold, and its LLVM IR.
pub(super) fn object(bytes: &[u8], symbol: &str, schema: &str) -> Result<(Vec<u8>, String), Unavailable> {
    let functions = library()?;
    let text = |s: &str| CString::new(s.replace('\0', " ")).unwrap_or_default();
    let (symbol, schema) = (text(symbol), text(schema));
    let (mut length, mut note) = (0, std::ptr::null_mut());
    // SAFETY: the version was checked; the pointers are to `bytes`, two C strings, `length` and `note`.
    let made = unsafe {
        (functions.object)(
            bytes.as_ptr(),
            bytes.len(),
            symbol.as_ptr(),
            schema.as_ptr(),
            &raw mut length,
            &raw mut note,
        )
    };
    let note = take(functions, note).unwrap_or_else(|| "no reason given".to_owned());
    if made.is_null() {
        return Err(Unavailable::Refused(note));
    }
    // SAFETY: what is not null is so many bytes until it is freed.
    let object = unsafe { std::slice::from_raw_parts(made, length) }.to_vec();
    // SAFETY: it is from the library and this is its only `free_bytes`.
    unsafe { (functions.free_bytes)(made, length) };
    Ok((object, note))
}

/// A text the library gave, which is freed; none where it is null.
fn take(functions: Functions, text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a text that is not null is a C string until it is freed.
    let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: it is from the library and this is its only `free_text`.
    unsafe { (functions.free_text)(text) };
    Some(owned)
}

impl Code {
    pub(super) fn run(&self, n: usize, columns: &[&[f64]]) -> Vec<Vec<f64>> {
        // The kernel reads `n` values of every column: what is short or missing is filled up.
        let padded: Vec<Vec<f64>> = (0..self.inputs)
            .map(|i| {
                let given = columns.get(i).copied().unwrap_or_default();
                if given.len() >= n { Vec::new() } else { [given, &vec![0.0; n - given.len()]].concat() }
            })
            .collect();
        let ins: Vec<*const f64> = padded
            .iter()
            .enumerate()
            .map(|(i, padded)| columns.get(i).filter(|c| c.len() >= n).map_or(padded.as_ptr(), |c| c.as_ptr()))
            .collect();
        let mut out = vec![vec![0.0; n]; self.roots];
        let outs: Vec<*mut f64> = out.iter_mut().map(Vec::as_mut_ptr).collect();
        // SAFETY: there are as many columns as the graph has inputs and roots, each of at least `n` values, and those of
        // `out` are apart from all others.
        let status = unsafe { (self.functions.run)(self.kernel, n as i64, ins.as_ptr(), outs.as_ptr()) };
        debug_assert_eq!(status, 0, "a kernel that is not null always runs");
        out
    }
}

/// Where the library may be: where the variable says, else beside the program or one folder up, where `cargo` puts it
/// for tests.
#[expect(clippy::disallowed_methods, reason = "where the library lies is a matter of the machine, not of a command")]
fn places() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
        return vec![path.into()];
    }
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let name = libloading::library_filename("parc_codegen");
    program.ancestors().skip(1).take(2).map(|folder| folder.join(&name)).collect()
}

fn open(places: Vec<PathBuf>) -> Result<Functions, Unavailable> {
    let Some(path) = places.iter().find(|path| path.is_file()) else { return Err(Unavailable::NotFound(places)) };
    let failed = |error: libloading::Error| Unavailable::NotOpened(path.clone(), error.to_string());
    functions(path).map_err(failed)?
}

/// Opens the library at `path` and checks its version before anything else of it is called.
fn functions(path: &Path) -> Result<Result<Functions, Unavailable>, libloading::Error> {
    // SAFETY: a library of this name is the back end; it runs nothing when opened but the start-up code of LLVM.
    let library = unsafe { Library::new(path) }?;
    // It stays open: kernels are code in it.
    let library = Box::leak(Box::new(library));
    // SAFETY: the function has this type in every version.
    let version = unsafe { library.get::<Version>(b"parc_codegen_version\0") }?;
    // SAFETY: it takes nothing and touches nothing.
    let found = unsafe { version() };
    if found != ABI {
        return Ok(Err(Unavailable::Version(path.to_owned(), found)));
    }
    // SAFETY: in the version just checked the functions have these types.
    unsafe {
        Ok(Ok(Functions {
            compile: *library.get::<Compile>(b"parc_codegen_compile\0")?,
            run: *library.get::<Run>(b"parc_codegen_run\0")?,
            ir: *library.get::<Ir>(b"parc_codegen_ir\0")?,
            object: *library.get::<Object>(b"parc_codegen_object\0")?,
            free_bytes: *library.get::<FreeBytes>(b"parc_codegen_free_bytes\0")?,
            free: *library.get::<Free>(b"parc_codegen_free\0")?,
            free_text: *library.get::<FreeText>(b"parc_codegen_free_text\0")?,
        }))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test makes a file that is no library")]
mod tests {
    use super::{Unavailable, open};

    #[test]
    fn a_library_that_is_missing_or_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("libparc_codegen.so");
        let places = vec![path.clone(), folder.path().to_owned()];
        assert_eq!(open(places.clone()).err(), Some(Unavailable::NotFound(places)));
        std::fs::write(&path, "no library").expect("a file");
        assert!(matches!(open(vec![path.clone()]), Err(Unavailable::NotOpened(at, _)) if at == path));
    }
}
