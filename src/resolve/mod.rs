//! Names to declarations: modules, imports, scopes.
