//! Plain text for the terminal: columns wide enough for their widest cell.

use crate::document::{Document, LineView, NotBilledView, UnpricedView};
use crate::text::{hours, is_something, microseconds};
use std::fmt::Write as _;

/// Which way the cells of a column lean.
#[derive(Clone, Copy)]
enum Lean {
    Left,
    Right,
}

/// The document as a table of its lines with head and totals.
pub fn table(document: &Document) -> String {
    let mut text = head(document);
    let columns = [
        ("#", Lean::Right),
        ("project", Lean::Left),
        ("sku", Lean::Left),
        ("class", Lean::Left),
        ("time", Lean::Right),
        ("quantity", Lean::Right),
        ("price", Lean::Right),
        ("amount", Lean::Right),
    ];
    let rows: Vec<Vec<String>> = document.lines.iter().enumerate().map(|(i, line)| cells(i, line)).collect();
    text.push_str(&grid(&columns, &rows));
    text.push('\n');
    for (name, amount) in totals(document) {
        text.push_str(&format!("{name:>40}  {amount:>16} {}\n", document.currency));
    }
    for unpriced in &document.unpriced {
        text.push_str(&format!("\n  ! {}", no_price(unpriced)));
    }
    for one in &document.not_billed {
        let NotBilledView { source, id, description, amount, currency } = one;
        text.push_str(&format!("\n  ! not billed: {description}, {amount} {currency} ({source} {id})"));
    }
    if !document.unpriced.is_empty() {
        text.push_str("\n  ! a document with usage that has no price cannot be issued\n");
    }
    text
}

fn no_price(unpriced: &UnpricedView) -> String {
    let UnpricedView { sku, quantity, .. } = unpriced;
    let late = unpriced.period.as_ref().map_or_else(String::new, |period| format!(" in {period}"));
    match (&unpriced.allocation, &unpriced.class, &unpriced.unit) {
        (Some(allocation), Some(class), _) => {
            format!("no price: {sku} {class} by {allocation} for {quantity} s{late}")
        }
        (_, _, unit) => format!("no price: {quantity} {} of {sku}{late}", unit.as_deref().unwrap_or("units")),
    }
}

fn head(document: &Document) -> String {
    let title = match &document.number {
        Some(number) => format!("Invoice {number} ({})", document.status),
        None => format!("Invoice {} ({})", document.id, document.status),
    };
    format!(
        "{title}\n  from    {}\n  to      {}\n  tenant  {}\n  period  {}  [{}, {}) {}\n\n",
        document.seller.name,
        document.customer.name,
        document.tenant,
        document.period,
        document.window.start,
        document.window.end,
        document.window.zone,
    )
}

fn cells(index: usize, line: &LineView) -> Vec<String> {
    let is_time = line.unit == "second";
    let time = microseconds(&line.quantity).filter(|_| is_time).map_or_else(String::new, hours);
    let unit = if is_time { "s" } else { &line.unit };
    vec![
        (index + 1).to_string(),
        line.project.clone().unwrap_or_else(|| "-".to_owned()),
        what(line),
        line.class.clone().unwrap_or_else(|| "-".to_owned()),
        time,
        format!("{} {unit}", line.quantity),
        format!("{}/{}", line.unit_price, line.per),
        line.amount.clone(),
    ]
}

/// `l40s`, `h100, idle`, `Support in October`, `l40s, adjusts 2026-10`.
fn what(line: &LineView) -> String {
    let mut text = line.sku.clone().unwrap_or_else(|| line.description.clone());
    if let Some(state) = &line.state {
        text.push_str(&format!(", {state}"));
    }
    if let Some(corrects) = &line.corrects {
        text.push_str(&format!(", adjusts {}", corrects.period));
    }
    text
}

fn totals(document: &Document) -> Vec<(String, &str)> {
    let mut rows = vec![("subtotal".to_owned(), document.subtotal.as_str())];
    rows.extend(
        document.taxes.iter().map(|t| (format!("{} {} on {}", t.name, t.rate, t.base), t.amount.as_str())),
    );
    rows.push(("total".to_owned(), &document.total));
    if is_something(&document.carried_in) {
        rows.push(("carried over in your favour".to_owned(), &document.carried_in));
    }
    if is_something(&document.carried_out) {
        rows.push(("left in your favour".to_owned(), &document.carried_out));
    }
    if document.amount_due != document.total {
        rows.push(("amount due".to_owned(), &document.amount_due));
    }
    rows
}

/// The heads of documents, as `invoice list` shows them.
pub fn list_table(documents: &[Document]) -> String {
    let columns = [
        ("id", Lean::Left),
        ("number", Lean::Left),
        ("kind", Lean::Left),
        ("status", Lean::Left),
        ("tenant", Lean::Left),
        ("period", Lean::Left),
        ("total", Lean::Right),
        ("currency", Lean::Left),
    ];
    let row = |d: &Document| {
        let number = d.number.clone().unwrap_or_else(|| "-".to_owned());
        [&d.id, &number, &d.kind, &d.status, &d.tenant, &d.period, &d.total, &d.currency]
            .map(String::clone)
            .to_vec()
    };
    grid(&columns, &documents.iter().map(row).collect::<Vec<_>>())
}

fn grid(columns: &[(&str, Lean)], rows: &[Vec<String>]) -> String {
    let width = |at: usize, title: &str| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([title.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(|(at, (title, _))| width(at, title)).collect();
    let titles: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
    let rule: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
    let mut text = String::new();
    for row in [&titles, &rule].into_iter().chain(rows) {
        let mut line = String::new();
        for ((cell, (_, lean)), width) in row.iter().zip(columns).zip(&widths) {
            let written = match lean {
                Lean::Left => write!(line, "  {cell:<width$}"),
                Lean::Right => write!(line, "  {cell:>width$}"),
            };
            // Writing to a String does not fail.
            debug_assert!(written.is_ok());
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::sample;

    #[test]
    fn columns_stand_under_each_other() {
        let text = table(&sample());
        let lines: Vec<&str> = text.lines().collect();
        let header = lines.iter().position(|l| l.contains("quantity")).unwrap();
        let ends: Vec<usize> = lines[header..header + 4].iter().map(|l| l.chars().count()).collect();
        assert!(ends.windows(2).all(|w| w[0] == w[1]), "amounts lean to one edge\n{text}");
        assert!(text.contains("a10") && text.contains("1 h 30 min") && text.contains("0.68"), "{text}");
        assert!(text.contains("VAT 0.19 on 5.09") && text.contains("6.06 EUR"), "{text}");
    }

    #[test]
    fn usage_without_a_price_is_named() {
        let mut document = sample();
        document.unpriced = vec![crate::document::UnpricedView {
            allocation: Some("a-2".to_owned()),
            sku: "b200".to_owned(),
            class: Some("on_demand".to_owned()),
            start: "2026-10-05T00:00:00Z".to_owned(),
            end: "2026-10-05T01:00:00Z".to_owned(),
            quantity: "3600".to_owned(),
            unit: None,
            period: None,
        }];
        assert!(table(&document).contains("no price: b200 on_demand by a-2 for 3600 s"));
    }

    #[test]
    fn lists_show_one_row_a_document() {
        let text = list_table(&[sample(), sample()]);
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("inv-2026-10-acme-1") && text.contains("6.06"));
    }
}
