//! Diagnostics to text, short lines and JSON lines.
