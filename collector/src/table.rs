//! Columns a person reads: numbers to the right, no frames. A wide table is the terminal's to wrap; a pipe gets whole lines.

/// Spaces between columns.
const GAP: &str = "  ";

/// Rows below headings, each column as wide as its widest cell. Columns named in `numbers` are aligned to the right.
pub(crate) fn columns(headings: &[&str], numbers: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(index, heading)| {
            let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| width(cell));
            cells.chain([width(heading)]).max().unwrap_or_default()
        })
        .collect();
    let head: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let cells = row.iter().zip(headings).zip(&widths).map(|((cell, heading), wide)| {
            let padding = " ".repeat(wide - width(cell));
            if numbers.contains(heading) { padding + cell } else { cell.clone() + &padding }
        });
        text.push_str(cells.collect::<Vec<_>>().join(GAP).trim_end());
        text.push('\n');
    }
    text
}

/// Each line two spaces in.
pub(crate) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// `unavailable(no_permission)` as `n/a (no_permission)`; other labels as they are.
pub(crate) fn absence(label: &str) -> String {
    let reason = label.strip_prefix("unavailable(").and_then(|rest| rest.strip_suffix(')'));
    reason.map_or_else(|| label.to_owned(), |reason| format!("n/a ({reason})"))
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_numbers_stand_right() {
        let rows = [vec!["a".to_owned(), "7".to_owned()], vec!["bcd".to_owned(), "1234".to_owned()]];
        assert_eq!(columns(&["x", "n"], &["n"], &rows), "x       n\na       7\nbcd  1234\n");
        assert_eq!(indented("a\nb\n"), "  a\n  b\n");
    }
}
