//! From a line of a document back to what it is made of, in words.

mod arithmetic;
mod around;

use crate::document::{DetailView, Document, LineView};
use crate::error::BillingError;
use arithmetic::arithmetic;
pub(crate) use around::around;
use serde::Serialize;

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
    /// The facts about its allocations, where they were placed and how their devices were, or those that reported or recorded it, in order
    /// of time.
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

impl Why {
    /// In words, for a terminal.
    pub fn text(&self) -> String {
        let line = &self.line;
        let mut text = format!(
            "{} — {}\n  {}{}, {} {} {}\n",
            line.id,
            self.number
                .as_ref()
                .map_or_else(|| self.status.clone(), |n| format!("invoice {n}, {}", self.status)),
            self.what(),
            line.project.as_ref().map_or_else(String::new, |p| format!("/{p}")),
            self.period,
            line.amount,
            self.currency,
        );
        let mut say = |paragraph: String| {
            text.push_str(&paragraph);
            text.push('\n');
        };
        if let Some(corrects) = &line.corrects {
            let line =
                corrects.line.as_ref().map_or_else(|| "no line of a document yet".to_owned(), Clone::clone);
            say(format!("\nCorrects\n  {line}, {} of {}", corrects.kind, corrects.period));
        }
        if let Some(price) = &line.price {
            say(format!(
                "\nPrice\n  rate card {} of {}, prices[{}]: {} {} per {}, lock {}",
                price.card,
                price.effective_from,
                price.index,
                line.unit_price,
                self.currency,
                line.per,
                price.lock
            ));
        }
        say("\nArithmetic".to_owned());
        self.arithmetic.iter().for_each(|step| say(format!("  {step}")));
        let parts: Vec<String> = line.details.iter().filter_map(part_row).collect();
        if !parts.is_empty() {
            say(format!("\nAllocations ({})", parts.len()));
            parts.into_iter().for_each(&mut say);
        }
        say(format!("\nFacts ({})", self.facts.len()));
        for fact in &self.facts {
            say(format!("  {}  {}  {} {}", fact.time, fact.kind, fact.source, fact.id));
        }
        text
    }

    /// `NVIDIA H100 80 GB, on demand of acme`.
    fn what(&self) -> String {
        let line = &self.line;
        let words = [Some(line.description.as_str()), line.class.as_deref(), line.state.as_deref()];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        format!("{} of {}", words.join(" "), self.tenant)
    }
}

/// A part that is a unit of an allocation; none of one that is a fact, which stands among the facts.
fn part_row(part: &DetailView) -> Option<String> {
    let (allocation, unit) = (part.allocation.as_ref()?, part.unit.as_ref()?);
    let added = if part.added == "0" { String::new() } else { format!(", {} s of it added", part.added) };
    let DetailView { start, end, quantity, .. } = part;
    Some(format!("  {allocation} unit {unit}  [{start}, {end})  {quantity} s{added}"))
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
