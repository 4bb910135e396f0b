//! The tokens: what logos recognises, and what each is to the layers above it.
//!
//! A token is a kind and a range of bytes; its text stays in the source.

use super::ast::Kind;
use logos::Logos;

/// One token where it stands.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) tok: Tok,
    /// Whether it is the first on its line.
    pub(crate) first: bool,
    /// Whether it was reported, or was put in where something was missing.
    pub(crate) repaired: bool,
    /// First byte.
    pub(crate) start: u32,
    /// One past the last byte.
    pub(crate) end: u32,
}

impl Token {
    /// A token that the text does not have, at byte `at`.
    pub(crate) fn missing(tok: Tok, at: u32) -> Self {
        Self { tok, first: false, repaired: true, start: at, end: at }
    }
}

macro_rules! tokens {
    (words { $($word:ident $text:tt)* } signs { $($sign:ident $mark:tt)* }) => {
        /// What a token is.
        #[derive(Logos, Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[logos(skip r"[ \t\r\x0c]+")]
        pub(crate) enum Tok {
            $(#[token($text)] $word,)*
            $(#[token($mark)] $sign,)*
            #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
            Ident,
            /// A number; the lexer adds its unit.
            #[regex(r"[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?")]
            Number,
            #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
            Str,
            /// The start of a string whose line ends first; the lexer adds the rest.
            #[token("\"")]
            OpenStr,
            #[token("\n")]
            Newline,
            #[regex(r"//[^\n]*", allow_greedy = true)]
            Comment,
            // What other languages write; the lexer turns each into the token that was meant.
            #[regex(r"#[^\n]*", allow_greedy = true)]
            Hash,
            #[token("/*")]
            BlockComment,
            #[regex(r"'[^'\n]*'")]
            Quoted,
            #[regex(r"\$ *[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?")]
            DollarNumber,
            #[token(";")]
            Semicolon,
            #[token("&&")]
            AndAnd,
            #[token("||")]
            OrOr,
            #[token("!")]
            Bang,
            #[token(":=")]
            ColonEq,
            #[token("%")]
            Percent,
            // What no text spells.
            /// Separates items and entries of braces.
            Sep,
            /// Stands for what could not be read and was reported.
            Error,
            /// Characters that mean nothing; reported.
            Bad,
        }

        impl Tok {
            /// The reserved word or sign, where the token has one spelling.
            pub(crate) fn spelling(self) -> Option<&'static str> {
                match self {
                    $(Self::$word => Some($text),)*
                    $(Self::$sign => Some($mark),)*
                    Self::Ident | Self::Number | Self::Str | Self::OpenStr | Self::Newline | Self::Comment
                    | Self::Hash | Self::BlockComment | Self::Quoted | Self::DollarNumber | Self::Semicolon
                    | Self::AndAnd | Self::OrOr | Self::Bang | Self::ColonEq | Self::Percent | Self::Sep
                    | Self::Error | Self::Bad => None,
                }
            }

            /// Whether it is a reserved word.
            pub(crate) fn is_word(self) -> bool {
                matches!(self, $(Self::$word)|*)
            }

            /// Whether `text` is reserved.
            pub(crate) fn reserved(text: &str) -> bool {
                matches!(text, $($text)|*)
            }
        }
    };
}

tokens! {
    words {
        Fn "fn" Op "op" Table "table" Dtype "dtype" Device "device" Host "host" Link "link" Cluster "cluster"
        Precision "precision" Optimizer "optimizer" Schedule "schedule" Cost "cost" Model "model" Block "block"
        Layout "layout" Train "train" Finetune "finetune" Serve "serve" Workflow "workflow" Unit "unit"
        Edition "edition" Use "use" Let "let" Level "level" Dims "dims" Dim "dim" Input "input" Param "param"
        Region "region" Repeat "repeat" Return "return" Mesh "mesh" Axis "axis" Fold "fold" Place "place" Part "part"
        Shard "shard" Replicate "replicate" Store "store" Reduce "reduce" Pad "pad" Recompute "recompute"
        Pipeline "pipeline" Overlap "overlap" Require "require" Expect "expect" Minimize "minimize"
        Maximize "maximize"
        As "as" Of "of" Over "over" On "on" Via "via" With "with" In "in" For "for" If "if" Then "then" Else "else"
        And "and" Or "or" Not "not" Div "div" Mod "mod" Divides "divides" Within "within" True "true" False "false"
    }
    signs {
        LParen "(" RParen ")" LBracket "[" RBracket "]" LBrace "{" RBrace "}"
        Dot "." DotDot ".." Comma "," Colon ":" Path "::" Eq "=" Arrow "->" Plus "+" Minus "-" PlusMinus "+-"
        Star "*" StarStar "**" Slash "/" At "@" Caret "^" EqEq "==" NotEq "!=" Lt "<" Le "<=" Gt ">" Ge ">="
        Tilde "~" Hole "?"
    }
}

impl Tok {
    /// The declaration this keyword begins.
    pub(crate) fn kind(self) -> Option<Kind> {
        const KINDS: [(Tok, Kind); 19] = [
            (Tok::Fn, Kind::Fn),
            (Tok::Op, Kind::Op),
            (Tok::Table, Kind::Table),
            (Tok::Dtype, Kind::Dtype),
            (Tok::Device, Kind::Device),
            (Tok::Host, Kind::Host),
            (Tok::Link, Kind::Link),
            (Tok::Cluster, Kind::Cluster),
            (Tok::Precision, Kind::Precision),
            (Tok::Optimizer, Kind::Optimizer),
            (Tok::Schedule, Kind::Schedule),
            (Tok::Cost, Kind::Cost),
            (Tok::Model, Kind::Model),
            (Tok::Block, Kind::Block),
            (Tok::Layout, Kind::Layout),
            (Tok::Train, Kind::Train),
            (Tok::Finetune, Kind::Finetune),
            (Tok::Serve, Kind::Serve),
            (Tok::Workflow, Kind::Workflow),
        ];
        if self > Self::Workflow { None } else { KINDS.get(self as usize).map(|k| k.1) }
    }

    /// Whether an item of a block may begin with this reserved word.
    pub(crate) fn begins_item(self) -> bool {
        self.kind().is_some()
            || (self >= Self::Let && self <= Self::Maximize && !matches!(self, Self::Dim | Self::Param))
            || matches!(self, Self::In | Self::If)
    }

    /// Whether an entry of a file may begin with this reserved word.
    pub(crate) fn begins_entry(self) -> bool {
        self.kind().is_some() || matches!(self, Self::Unit | Self::Edition | Self::Use | Self::Let)
    }

    /// Whether it joins parts of an item and begins none: `over`, `then`, `and`.
    pub(crate) fn is_connective(self) -> bool {
        self >= Self::As && self <= Self::False
    }

    /// Whether a line break after it may separate.
    pub(crate) fn can_end_item(self) -> bool {
        self.kind().is_some()
            || matches!(
                self,
                Self::Ident
                    | Self::Number
                    | Self::Str
                    | Self::Hole
                    | Self::RParen
                    | Self::RBracket
                    | Self::RBrace
                    | Self::Star
                    | Self::StarStar
                    | Self::True
                    | Self::False
                    | Self::Param
                    | Self::Bad
                    | Self::Error
            )
    }

    /// Whether at the start of a line it carries on what the line before began.
    pub(crate) fn continues(self) -> bool {
        match self {
            Self::Dot
            | Self::Comma
            | Self::Colon
            | Self::Eq
            | Self::Arrow
            | Self::Plus
            | Self::Minus
            | Self::Star
            | Self::Slash
            | Self::At
            | Self::Caret
            | Self::Tilde
            | Self::PlusMinus
            | Self::EqEq
            | Self::NotEq
            | Self::Lt
            | Self::Le
            | Self::Gt
            | Self::Ge
            | Self::DotDot
            | Self::RParen
            | Self::RBracket
            | Self::LBrace => true,
            word => word.is_connective() && !matches!(word, Self::In | Self::If | Self::True | Self::False),
        }
    }

    /// The bracket that closes this one.
    pub(crate) fn closer(self) -> Option<Self> {
        match self {
            Self::LParen => Some(Self::RParen),
            Self::LBracket => Some(Self::RBracket),
            Self::LBrace => Some(Self::RBrace),
            _ => None,
        }
    }

    /// Whether it closes a bracket.
    pub(crate) fn is_closer(self) -> bool {
        matches!(self, Self::RParen | Self::RBracket | Self::RBrace)
    }
}

impl Token {
    /// Its place in `file`.
    pub(crate) fn span(self, file: crate::source::FileId) -> crate::source::Span {
        crate::source::Span { file, start: self.start, end: self.end }
    }
}
