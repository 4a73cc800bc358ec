//! Tables a person reads: right-aligned numbers, no frames around frames.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// Rules above, below and under the headings; none between rows.
const STYLE: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// Columns of a terminal that does not say how wide it is.
const USUAL_WIDTH: u16 = 140;

/// Long details wrap at the width the shell exports, where it does.
fn width() -> u16 {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(USUAL_WIDTH)
}

/// A table with these headings; columns named in `numbers` are aligned to the right.
pub(crate) fn render(headings: &[&str], numbers: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_width(width());
    let align = |index: usize, text: &str| {
        let cell = Cell::new(text);
        let numeric = headings.get(index).is_some_and(|heading| numbers.contains(heading));
        if numeric { cell.set_alignment(CellAlignment::Right) } else { cell }
    };
    table.set_header(headings.iter().enumerate().map(|(index, text)| align(index, text)));
    for row in rows {
        table.add_row(row.iter().enumerate().map(|(index, text)| align(index, text)));
    }
    table.to_string()
}
