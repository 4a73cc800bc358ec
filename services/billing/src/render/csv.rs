//! CSV: one row a line, RFC 4180 with CRLF, safe to open in a spreadsheet.

use crate::document::{Document, LineView};
use crate::error::BillingError;
use std::borrow::Cow;

const HEADER: [&str; 23] = [
    "invoice",
    "number",
    "status",
    "seller",
    "customer",
    "tenant",
    "period",
    "line",
    "kind",
    "project",
    "sku",
    "description",
    "class",
    "state",
    "quantity",
    "unit",
    "unit_price",
    "per",
    "amount",
    "currency",
    "allocations",
    "corrects_period",
    "corrects_line",
];

/// The lines of a document.
///
/// # Errors
/// The rows cannot be written, which no row of this crate does.
pub fn csv(document: &Document) -> Result<String, BillingError> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(HEADER).map_err(BillingError::Csv)?;
    for line in &document.lines {
        writer
            .write_record(row(document, line).iter().map(AsRef::<str>::as_ref))
            .map_err(BillingError::Csv)?;
    }
    let bytes = writer.into_inner().map_err(|e| BillingError::Csv(e.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn row<'a>(document: &'a Document, line: &'a LineView) -> [Cow<'a, str>; 23] {
    let corrects = line.corrects.as_ref();
    [
        text(&document.id),
        text(document.number.as_deref().unwrap_or_default()),
        text(&document.status),
        text(&document.seller.name),
        text(&document.customer.name),
        text(&document.tenant),
        text(&document.period),
        text(&line.id),
        text(&line.kind),
        text(line.project.as_deref().unwrap_or_default()),
        text(line.sku.as_deref().unwrap_or_default()),
        text(&line.description),
        text(line.class.as_deref().unwrap_or_default()),
        text(line.state.as_deref().unwrap_or_default()),
        number(&line.quantity),
        text(&line.unit),
        number(&line.unit_price),
        text(&line.per),
        number(&line.amount),
        text(&document.currency),
        Cow::Owned(line.details.iter().filter(|part| part.allocation.is_some()).count().to_string()),
        text(corrects.map_or("", |corrects| &corrects.period)),
        text(corrects.and_then(|corrects| corrects.line.as_deref()).unwrap_or_default()),
    ]
}

/// A cell with a name someone chose. A spreadsheet would run one that begins like a formula, so it is made text by an apostrophe.
fn text(cell: &str) -> Cow<'_, str> {
    match cell.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r') => Cow::Owned(format!("'{cell}")),
        _ => Cow::Borrowed(cell),
    }
}

/// A cell with a number of ours: may begin with a minus and is no formula.
fn number(cell: &str) -> Cow<'_, str> {
    Cow::Borrowed(cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::sample;

    #[test]
    fn rows_end_in_crlf_and_cells_are_quoted_where_needed() {
        let mut document = sample();
        document.customer.name = "Acme, \"Robotics\" AG".to_owned();
        let text = csv(&document).unwrap();
        let rows: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(
            rows.len(),
            document.lines.len() + 2,
            "a header, the lines, and nothing after the last CRLF"
        );
        assert!(rows[1].contains("\"Acme, \"\"Robotics\"\" AG\""), "{}", rows[1]);
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let amount = |r: csv::StringRecord| r[18].to_owned();
        let amounts: Vec<String> = reader.records().map(|r| amount(r.unwrap())).collect();
        assert_eq!(amounts, document.lines.iter().map(|l| l.amount.clone()).collect::<Vec<_>>());
    }

    #[test]
    fn names_that_look_like_formulas_become_text_and_numbers_stay_numbers() {
        let mut document = sample();
        document.lines[0].project = Some("=HYPERLINK(\"http://x\")".to_owned());
        document.lines[0].amount = "-1.00".to_owned();
        let text = csv(&document).unwrap();
        let record = csv::Reader::from_reader(text.as_bytes()).records().next().unwrap().unwrap();
        assert_eq!((&record[9], &record[18]), ("'=HYPERLINK(\"http://x\")", "-1.00"));
        for cell in ["+1", "-x", "@x", "\tx", "\rx"] {
            assert!(super::text(cell).starts_with('\''), "{cell:?}");
        }
    }
}
