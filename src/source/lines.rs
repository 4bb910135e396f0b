//! Byte offset to line and column.

/// Starts of the lines of one text.
#[derive(Debug, Default)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes `text`.
    pub fn new(text: &str) -> Self {
        let mut starts = vec![0];
        starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        Self { starts }
    }

    /// Line and column of byte `offset`, from 1; columns count characters. Offsets past the end are the end.
    pub fn line_col(&self, text: &str, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|s| *s as usize <= offset).max(1);
        let start = self.starts[line - 1] as usize;
        let column = text.get(start..offset).map_or(0, |t| t.chars().count()) + 1;
        (line, column)
    }

    /// Byte range of line `line` (from 1), its line break left out.
    pub fn range(&self, text: &str, line: usize) -> Option<std::ops::Range<usize>> {
        let start = *self.starts.get(line.checked_sub(1)?)? as usize;
        let end = self.starts.get(line).map_or(text.len(), |e| *e as usize - 1);
        Some(start..end)
    }
}
