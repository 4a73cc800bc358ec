//! The bill a person reads: one file, no outside resource, prints on A4.

use crate::document::{DetailView, Document, LineView, TaxView};
use crate::error::BillingError;
use crate::text::{exact, grouped, hours, microseconds};
use askama::Template;
use chrono::{Datelike, NaiveDate};
use gpuledger_domain::money::{Decimal, multiply_exact};
use num_rational::Ratio;

/// Allocations shown under a line; a page of ten thousand helps nobody, `gpuledger why` has them all.
const DETAILS_MAX: usize = 60;
const HOUR_US: i128 = 3_600_000_000;

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
    unpriced: Vec<UnpricedRow<'a>>,
    digest: String,
}

struct Row<'a> {
    line: &'a LineView,
    number: usize,
    class: String,
    hours: String,
    seconds: String,
    amount: String,
    arithmetic: String,
    details: Vec<Detail<'a>>,
    more: usize,
    locked: bool,
}

struct Detail<'a> {
    detail: &'a DetailView,
    start: String,
    end: String,
    hours: String,
    added: Option<String>,
}

struct UnpricedRow<'a> {
    allocation: &'a str,
    sku: &'a str,
    hours: String,
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
    let unpriced = document.unpriced.iter().map(|u| UnpricedRow {
        allocation: &u.allocation,
        sku: &u.sku,
        hours: microseconds(&u.quantity).map_or_else(|| u.quantity.clone(), hours),
    });
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
        unpriced: unpriced.collect(),
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

fn row(index: usize, line: &LineView) -> Option<Row<'_>> {
    let quantity_us = microseconds(&line.quantity)?;
    let price: Decimal = line.unit_price.parse().ok()?;
    let exact_amount = multiply_exact(Ratio::new(quantity_us, HOUR_US), price.value())?;
    let seconds = grouped(&line.quantity);
    Some(Row {
        line,
        number: index + 1,
        class: line.class.replace('_', " "),
        hours: hours(quantity_us),
        amount: grouped(&line.amount),
        arithmetic: format!("{seconds} s × {} ÷ 3600 = {}", line.unit_price, exact(exact_amount)),
        seconds,
        details: line.details.iter().take(DETAILS_MAX).map(detail).collect(),
        more: line.details.len().saturating_sub(DETAILS_MAX),
        locked: line.price.lock == "at_start",
    })
}

fn detail(detail: &DetailView) -> Detail<'_> {
    let time = |text: &str| microseconds(text).map_or_else(|| text.to_owned(), hours);
    Detail {
        detail,
        start: moment(&detail.start),
        end: moment(&detail.end),
        hours: time(&detail.quantity),
        added: (detail.added != "0").then(|| time(&detail.added)),
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
