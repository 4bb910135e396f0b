//! Documents of declarations: what is said of them in `///` comments, their parameters and fields, their text. Trees come
//! in, pages go out as Markdown or HTML; nothing is evaluated, and nothing here reads or writes a file.

mod build;
mod html;
mod markdown;
mod prose;

pub use build::build;
pub use html::html;
pub use markdown::{markdown, markdown_page};
pub use prose::{Inline, Paragraph};

use std::collections::BTreeMap;

/// Every page of a document.
#[derive(Debug)]
pub struct Book {
    /// What the document is of: `The standard library`, or the file's name.
    pub title: String,
    /// One page a file, in the order given.
    pub pages: Vec<Page>,
    /// Where each declared name is described.
    places: BTreeMap<String, Place>,
}

/// Where a declaration is described.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    /// Name of the page, without an extension.
    page: String,
    /// Name of the declaration, which is its anchor.
    anchor: String,
}

/// What is documented of one file.
#[derive(Debug)]
pub struct Page {
    /// Name of its file without an extension: `hardware-nvidia`.
    pub name: String,
    /// The file: `std/hardware/nvidia.par`.
    pub file: String,
    /// How a program names it: `std::hardware`; nothing for the user's own.
    pub module: Option<String>,
    /// What the file says of itself.
    pub about: Vec<Paragraph>,
    /// Its declarations, in order.
    pub items: Vec<Item>,
}

/// A declaration.
#[derive(Debug)]
pub struct Item {
    /// `device`, `model`, …; `let` for a named value.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its head, as written, on as few lines as written.
    pub signature: String,
    /// What its comment says.
    pub about: Vec<Paragraph>,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Fields that have a value, and what they mean.
    pub fields: Vec<Field>,
    /// Declarations inside it: the functions of a schedule or cost, levels of a cluster.
    pub parts: Vec<Part>,
    /// All of it, as written.
    pub source: String,
    /// Line of its name in the file.
    pub line: usize,
}

/// A parameter.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type, as written; empty where it is left open.
    pub ty: String,
    /// Values it may have, as written.
    pub domain: String,
    /// Its value where none is given, as written.
    pub default: String,
}

/// A field with its value.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its value, as written.
    pub value: String,
    /// What the field says, from the schema.
    pub meaning: &'static str,
    /// Its type, from the schema.
    pub ty: &'static str,
}

/// Something declared inside a declaration.
#[derive(Debug)]
pub struct Part {
    /// Its head, as written.
    pub signature: String,
    /// What its comment says.
    pub about: Vec<Paragraph>,
}

impl Book {
    /// Where `name` is described, if it is a declaration of this book.
    fn place(&self, name: &str) -> Option<&Place> {
        self.places.get(name)
    }
}

impl Page {
    /// The first sentence of what the file says of itself, or nothing.
    fn summary(&self) -> Vec<Inline> {
        prose::first_sentence(&self.about)
    }
}

impl Item {
    /// The first sentence of its comment, or nothing.
    fn summary(&self) -> Vec<Inline> {
        prose::first_sentence(&self.about)
    }
}
