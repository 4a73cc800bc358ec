//! The bill a person reads: one file, no outside resource, prints on A4.

use crate::document::{DetailView, Document, LineView, TaxView, UnpricedView};
use crate::error::BillingError;
use crate::text::{exact, grouped, hours, is_something, microseconds};
use askama::Template;
use chrono::{Datelike, NaiveDate};
use gpuledger_domain::money::{Decimal, multiply_exact};
use gpuledger_domain::rating::{Per, exact_amount};
use num_rational::Ratio;

/// Allocations shown under a line; a page of ten thousand helps nobody, `gpuledger why` has them all.
const DETAILS_MAX: usize = 60;

#[derive(Template)]
#[template(path = "invoice.html")]
struct Page<'a> {
    document: &'a Document,
    title: String,
    month: String,
    span: String,
    issued_on: Option<String>,
    lines: Vec<Row<'a>>,
    taxes: Vec<TaxRow<'a>>,
    subtotal: String,
    total: String,
    amount_due: String,
    carried_in: Option<String>,
    carried_out: Option<String>,
    unpriced: Vec<UnpricedRow<'a>>,
    digest: String,
}

struct Row<'a> {
    line: &'a LineView,
    number: usize,
    class: Option<String>,
    quantity: String,
    exact_quantity: Option<String>,
    price: String,
    amount: String,
    arithmetic: String,
    source: String,
    details: Vec<Detail>,
    more: usize,
    locked: bool,
}

struct Detail {
    what: String,
    start: String,
    end: String,
    quantity: String,
    added: Option<String>,
}

struct UnpricedRow<'a> {
    of: String,
    sku: &'a str,
    quantity: String,
}

struct TaxRow<'a> {
    name: &'a str,
    percent: String,
    base: String,
    amount: String,
}

/// The document as a page.
///
/// # Errors
/// A number of the document cannot be read, or the page cannot be laid out.
pub fn html(document: &Document) -> Result<String, BillingError> {
    let member =
        |member, text: &str| BillingError::Member { id: document.id.clone(), member, text: text.to_owned() };
    let first = NaiveDate::parse_from_str(&format!("{}-01", document.period), "%Y-%m-%d")
        .map_err(|_| member("period", &document.period))?;
    let lines = document.lines.iter().enumerate();
    let rows = lines
        .map(|(index, line)| row(index, line).ok_or_else(|| member("quantity", &line.quantity)))
        .collect::<Result<_, _>>()?;
    let taxes = document
        .taxes
        .iter()
        .map(|tax| tax_row(tax).ok_or_else(|| member("rate", &tax.rate)))
        .collect::<Result<_, _>>()?;
    let carried = |amount: &String| Some(grouped(amount)).filter(|_| is_something(amount));
    let page = Page {
        title: document.number.clone().unwrap_or_else(|| document.id.clone()),
        month: first.format("%B %Y").to_string(),
        span: span(first),
        issued_on: document.issued_on.as_deref().map(long_date),
        lines: rows,
        taxes,
        subtotal: grouped(&document.subtotal),
        total: grouped(&document.total),
        amount_due: grouped(&document.amount_due),
        carried_in: carried(&document.carried_in),
        carried_out: carried(&document.carried_out),
        unpriced: document.unpriced.iter().map(unpriced_row).collect(),
        digest: spaced(&document.facts.digest),
        document,
    };
    page.render().map_err(BillingError::Render)
}

/// The days of a month: `1 – 31 October 2026`.
fn span(first: NaiveDate) -> String {
    let last =
        first.checked_add_months(chrono::Months::new(1)).and_then(|next| next.pred_opt()).unwrap_or(first);
    format!("1 – {} {}", last.day(), first.format("%B %Y"))
}

fn long_date(day: &str) -> String {
    NaiveDate::parse_from_str(day, "%Y-%m-%d")
        .map_or_else(|_| day.to_owned(), |d| d.format("%-d %B %Y").to_string())
}

/// A digest in groups of eight, so that an eye can compare it.
fn spaced(digest: &str) -> String {
    let mut text = String::with_capacity(digest.len() + 8);
    for (position, digit) in digest.chars().enumerate() {
        if position > 0 && position % 8 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn unpriced_row(unpriced: &UnpricedView) -> UnpricedRow<'_> {
    let of =
        unpriced.allocation.as_ref().map_or_else(|| "reported".to_owned(), |id| format!("allocation {id}"));
    let late = unpriced.period.as_ref().map_or_else(String::new, |period| format!(", {period}"));
    let unit = unpriced.unit.as_deref().unwrap_or("second");
    UnpricedRow {
        of: format!("{of}{late}"),
        sku: &unpriced.sku,
        quantity: quantity(&unpriced.quantity, unit),
    }
}

/// A quantity as a person reads it: `1 h 30 min`, `5 gib`.
fn quantity(number: &str, unit: &str) -> String {
    match (unit, microseconds(number)) {
        ("second", Some(us)) => hours(us),
        _ => format!("{} {unit}", grouped(number)),
    }
}

fn row(index: usize, line: &LineView) -> Option<Row<'_>> {
    let is_time = line.unit == "second";
    let priced = line.price.as_ref();
    Some(Row {
        line,
        number: index + 1,
        class: line.class.as_ref().map(|class| class.replace('_', " ")),
        quantity: quantity(&line.quantity, &line.unit),
        exact_quantity: is_time.then(|| format!("{} s", grouped(&line.quantity))),
        price: priced.map(|_| format!("{} / {}", line.unit_price, line.per)).unwrap_or_default(),
        amount: grouped(&line.amount),
        arithmetic: arithmetic(line)?,
        source: priced.map_or_else(String::new, |p| format!("rate card {} of {}", p.card, p.effective_from)),
        details: line.details.iter().take(DETAILS_MAX).map(|part| detail(part, &line.unit)).collect(),
        more: line.details.len().saturating_sub(DETAILS_MAX),
        locked: priced.is_some_and(|price| price.lock == "at_start"),
    })
}

/// How a line came to its amount, in one sentence; none where a number cannot be read.
fn arithmetic(line: &LineView) -> Option<String> {
    if let Some(corrects) = &line.corrects {
        let (now, stood) = (&corrects.now, &corrects.stood);
        let unit = if line.unit == "second" { "s" } else { &line.unit };
        return Some(format!(
            "from all facts now {} {unit}, {}; before {} {unit}, {}",
            grouped(&now.quantity),
            grouped(&now.amount),
            grouped(&stood.quantity),
            grouped(&stood.amount)
        ));
    }
    if line.price.is_none() {
        return Some("recorded as an amount".to_owned());
    }
    let (price, per): (Decimal, Per) = (line.unit_price.parse().ok()?, Per::parse(&line.per)?);
    let amount = exact(exact_amount(line.quantity.parse().ok()?, price, per)?);
    let quantity = grouped(&line.quantity);
    Some(match per {
        Per::Hour => format!("{quantity} s × {} ÷ 3600 = {amount}, rounded {}", line.unit_price, line.amount),
        Per::Unit => {
            format!("{quantity} {} × {} = {amount}, rounded {}", line.unit, line.unit_price, line.amount)
        }
    })
}

fn detail(detail: &DetailView, unit: &str) -> Detail {
    let index = detail.unit.as_deref().filter(|unit| *unit != "0");
    let of_allocation =
        |id: &String| format!("{id}{}", index.map_or_else(String::new, |unit| format!(" #{unit}")));
    let of_fact =
        || format!("{} {}", detail.source.as_deref().unwrap_or("?"), detail.id.as_deref().unwrap_or("?"));
    Detail {
        what: detail.allocation.as_ref().map_or_else(of_fact, of_allocation),
        start: moment(&detail.start),
        end: moment(&detail.end),
        quantity: quantity(&detail.quantity, unit),
        added: (detail.added != "0").then(|| quantity(&detail.added, unit)),
    }
}

/// `2026-10-05T10:00:00Z` as `2026-10-05 10:00:00`; the page says that times are UTC.
fn moment(text: &str) -> String {
    text.trim_end_matches('Z').replace('T', " ")
}

fn tax_row(tax: &TaxView) -> Option<TaxRow<'_>> {
    let rate: Decimal = tax.rate.parse().ok()?;
    let percent = multiply_exact(rate.value(), Ratio::from_integer(100))?;
    Some(TaxRow {
        name: &tax.name,
        percent: exact(percent),
        base: grouped(&tax.base),
        amount: grouped(&tax.amount),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::sample;

    #[test]
    fn the_page_needs_nothing_from_outside() {
        let page = html(&sample()).unwrap();
        for word in ["http://", "https://", "url(", "@import", "<script", "<link", "src="] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.starts_with("<!doctype html>"));
    }

    #[test]
    fn the_page_shows_parties_lines_arithmetic_tax_and_rule() {
        let document = sample();
        let page = html(&document).unwrap();
        for text in [
            "GPU Cloud GmbH",
            "Acme Robotics AG",
            "October 2026",
            "30 min",
            "1\u{202f}800 s × 0.25 ÷ 3600 = 0.125",
            "VAT",
            "19 %",
            "5.09",
            "0.97",
            "6.06",
            "half away from zero",
            "inv-2026-10-acme-1.1",
            "a-4",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }

    #[test]
    fn a_draft_is_marked_and_an_issued_one_is_not() {
        let mut document = sample();
        assert!(html(&document).unwrap().contains("class=\"watermark\""));
        (document.status, document.number) = ("issued".to_owned(), Some("INV-2026-0001".to_owned()));
        let page = html(&document).unwrap();
        assert!(!page.contains("class=\"watermark\"") && page.contains("INV-2026-0001"));
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let mut document = sample();
        document.customer.name = "<script>alert(1)</script>".to_owned();
        document.lines[0].project = Some("\"><img src=x>".to_owned());
        let page = html(&document).unwrap();
        assert!(!page.contains("<script") && !page.contains("<img"));
    }

    #[test]
    fn long_lists_are_cut_and_say_so() {
        let mut document = sample();
        let one = document.lines[0].details[0].clone();
        document.lines[0].details = vec![one; DETAILS_MAX + 5];
        assert!(html(&document).unwrap().contains("and 5 more"));
    }

    #[test]
    fn a_number_that_is_none_is_an_error_that_names_it() {
        let mut document = sample();
        document.lines[0].quantity = "many".to_owned();
        assert!(html(&document).unwrap_err().to_string().contains("\"many\""));
    }
}
