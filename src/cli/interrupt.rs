//! Ctrl-C that ends a search with what it has found so far; a second one ends the program.

use std::sync::atomic::AtomicBool;

static STOP: AtomicBool = AtomicBool::new(false);

/// What is true once Ctrl-C was pressed.
pub(super) fn watch() -> &'static AtomicBool {
    #[cfg(unix)]
    unix::install();
    &STOP
}

#[cfg(unix)]
mod unix {
    #![expect(unsafe_code, reason = "signals have no safe interface in the standard library")]

    use super::STOP;
    use std::sync::atomic::Ordering;

    /// SIGINT, and what ends a program at it; the same on every Unix.
    const INTERRUPT: i32 = 2;
    const DEFAULT: usize = 0;

    unsafe extern "C" {
        safe fn signal(number: i32, handler: usize) -> usize;
    }

    extern "C" fn on_interrupt(_: i32) {
        STOP.store(true, Ordering::Relaxed);
        signal(INTERRUPT, DEFAULT);
    }

    pub(super) fn install() {
        let handler: extern "C" fn(i32) = on_interrupt;
        signal(INTERRUPT, handler as *const () as usize);
    }
}
