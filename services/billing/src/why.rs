//! From a line of a document back to what it is made of, in words.

use crate::document::{Document, LineView};
use crate::error::BillingError;
use crate::text::{exact, hours, microseconds, seconds};
use gpuledger_domain::money::{Decimal, multiply_exact};
use num_rational::Ratio;
use serde::Serialize;
use std::fmt::Write as _;

const HOUR_US: i128 = 3_600_000_000;

/// A fact behind a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FactRef {
    /// When it happened.
    pub time: String,
    /// Of which type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who said it.
    pub source: String,
    /// Its id within its source.
    pub id: String,
    /// SHA-256 of its content, in hex.
    pub digest: String,
}

/// What a line is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why {
    /// Of which document.
    pub document: String,
    /// Its number, once issued.
    pub number: Option<String>,
    /// Its status.
    pub status: String,
    /// Who used.
    pub tenant: String,
    /// When.
    pub period: String,
    /// What the amount is in.
    pub currency: String,
    /// The line as it stands on the document.
    pub line: LineView,
    /// The computation, step by step.
    pub arithmetic: Vec<String>,
    /// The facts about its allocations, in order of time.
    pub facts: Vec<FactRef>,
}

/// Explains a line of a document.
///
/// # Errors
/// A number of the line cannot be read.
pub fn why(document: &Document, line: &LineView, facts: Vec<FactRef>) -> Result<Why, BillingError> {
    Ok(Why {
        document: document.id.clone(),
        number: document.number.clone(),
        status: document.status.clone(),
        tenant: document.tenant.clone(),
        period: document.period.clone(),
        currency: document.currency.clone(),
        arithmetic: arithmetic(document, line)?,
        line: line.clone(),
        facts,
    })
}

/// Quantity, price, exact amount, rounded amount; and the sum of the parts, where there are several.
fn arithmetic(document: &Document, line: &LineView) -> Result<Vec<String>, BillingError> {
    let member =
        |member, text: &str| BillingError::Member { id: line.id.clone(), member, text: text.to_owned() };
    let quantity_us = microseconds(&line.quantity).ok_or_else(|| member("quantity", &line.quantity))?;
    let price: Decimal = line.unit_price.parse().map_err(|_| member("unit_price", &line.unit_price))?;
    let amount = multiply_exact(Ratio::new(quantity_us, HOUR_US), price.value())
        .ok_or_else(|| member("unit_price", &line.unit_price))?;
    let mut parts_us = 0;
    let mut added_us = 0;
    for part in &line.details {
        parts_us += microseconds(&part.quantity).ok_or_else(|| member("details.quantity", &part.quantity))?;
        added_us += microseconds(&part.added).ok_or_else(|| member("details.added", &part.added))?;
    }
    let mut steps = Vec::new();
    if line.details.len() > 1 {
        let count = line.details.len();
        steps.push(format!("{count} parts add up to {} s ({})", seconds(parts_us), hours(parts_us)));
    }
    if added_us > 0 {
        let terms = format!("minimum {} s, granularity {} s", line.price.minimum, line.price.granularity);
        steps.push(format!("of it {} s were added at the end of the holds: {terms}", seconds(added_us)));
    }
    steps.push(format!("{quantity_us} us are {} s", line.quantity));
    steps.push(format!(
        "{} s × {} {} per hour ÷ 3600 = {}",
        line.quantity,
        line.unit_price,
        document.currency,
        exact(amount)
    ));
    steps.push(format!("rounded once, half away from zero: {} {}", line.amount, document.currency));
    Ok(steps)
}

impl Why {
    /// In words, for a terminal.
    pub fn text(&self) -> String {
        let line = &self.line;
        let mut text = format!(
            "{} — {}\n  {} {} of {}{}, {} {} {}\n",
            line.id,
            self.number
                .as_ref()
                .map_or_else(|| self.status.clone(), |n| format!("invoice {n}, {}", self.status)),
            line.description,
            line.class,
            self.tenant,
            line.project.as_ref().map_or_else(String::new, |p| format!("/{p}")),
            self.period,
            line.amount,
            self.currency,
        );
        let mut say = |paragraph: String| {
            text.push_str(&paragraph);
            text.push('\n');
        };
        say(format!(
            "\nPrice\n  rate card {} of {}, prices[{}]: {} {} per {}, lock {}",
            line.price.card,
            line.price.effective_from,
            line.price.index,
            line.unit_price,
            self.currency,
            line.per,
            line.price.lock
        ));
        say("\nArithmetic".to_owned());
        self.arithmetic.iter().for_each(|step| say(format!("  {step}")));
        say(format!("\nAllocations ({})", line.details.len()));
        for part in &line.details {
            let mut row = format!(
                "  {} unit {}  [{}, {})  {} s",
                part.allocation, part.unit, part.start, part.end, part.quantity
            );
            if part.added != "0" {
                let written = write!(row, ", {} s of it added", part.added);
                // Writing to a String does not fail.
                debug_assert!(written.is_ok());
            }
            say(row);
        }
        say(format!("\nFacts ({})", self.facts.len()));
        for fact in &self.facts {
            say(format!("  {}  {}  {} {}", fact.time, fact.kind, fact.source, fact.id));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::sample;

    #[test]
    fn a_line_is_explained_down_to_its_facts() {
        let mut document = sample();
        document.lines[0].details[0].added = "1".to_owned();
        let fact = FactRef {
            time: "2026-10-05T10:00:00Z".to_owned(),
            kind: "gpuledger.allocation.granted.v1".to_owned(),
            source: "/allocators/t".to_owned(),
            id: "a-3-g".to_owned(),
            digest: "00".to_owned(),
        };
        let text = why(&document, &document.lines[0], vec![fact]).unwrap().text();
        for part in [
            "inv-2026-10-acme-1.1",
            "3 parts add up to 5400 s (1 h 30 min)",
            "1 s were added",
            "5400000000 us are 5400 s",
            "5400 s × 0.45 EUR per hour ÷ 3600 = 0.675",
            "rounded once, half away from zero: 0.68 EUR",
            "rate card standard of 2026-01-01T00:00:00Z, prices[2]",
            "a-5 unit 0",
            "/allocators/t a-3-g",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
