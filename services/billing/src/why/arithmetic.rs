//! The computation of a line, step by step, from what the document says.

use crate::document::{CorrectsView, Document, LineView};
use crate::error::BillingError;
use crate::text::{exact, hours};
use gpuledger_domain::money::Decimal;
use gpuledger_domain::rating::{Per, Quantity, exact_amount};

/// Quantity, price, exact amount, rounded amount; and the sum of the parts, where there are several.
pub(super) fn arithmetic(document: &Document, line: &LineView) -> Result<Vec<String>, BillingError> {
    let reader = Reader { line, currency: &document.currency };
    match (&line.corrects, line.kind.as_str()) {
        (Some(corrects), _) => reader.correction(corrects),
        (None, "charge") => {
            Ok(vec![format!("recorded as {} {}", line.unit_price, document.currency), reader.rounded()])
        }
        (None, _) => reader.product(),
    }
}

struct Reader<'l> {
    line: &'l LineView,
    currency: &'l str,
}

impl Reader<'_> {
    fn read(&self, member: &'static str, text: &str) -> Result<Quantity, BillingError> {
        text.parse().map_err(|_| self.bad(member, text))
    }

    fn bad(&self, member: &'static str, text: &str) -> BillingError {
        BillingError::Member { id: self.line.id.clone(), member, text: text.to_owned() }
    }

    fn is_time(&self) -> bool {
        self.line.unit == "second"
    }

    /// `1800 s`, `5 gib`.
    fn shown(&self, quantity: &str) -> String {
        let unit = if self.is_time() { "s" } else { &self.line.unit };
        format!("{quantity} {unit}")
    }

    fn product(&self) -> Result<Vec<String>, BillingError> {
        let line = self.line;
        let mut steps = self.parts()?;
        if self.is_time() {
            let quantity = self.read("quantity", &line.quantity)?;
            steps.push(format!("{} us are {} s", quantity.micros(), line.quantity));
        }
        steps.push(format!("{} = {}", self.times(), self.exact(&line.quantity)?));
        steps.push(self.rounded());
        Ok(steps)
    }

    /// The sum of the parts, and what minimum and granularity added.
    fn parts(&self) -> Result<Vec<String>, BillingError> {
        let line = self.line;
        let (mut sum, mut added) = (Quantity::default(), Quantity::default());
        for part in &line.details {
            let quantity = self.read("details.quantity", &part.quantity)?;
            sum = sum.plus(quantity).ok_or_else(|| self.bad("details.quantity", &part.quantity))?;
            let extra = self.read("details.added", &part.added)?;
            added = added.plus(extra).ok_or_else(|| self.bad("details.added", &part.added))?;
        }
        let mut steps = Vec::new();
        if line.details.len() > 1 {
            let count = line.details.len();
            let time = if self.is_time() { format!(" ({})", hours(sum.micros())) } else { String::new() };
            steps.push(format!("{count} parts add up to {}{time}", self.shown(&sum.to_string())));
        }
        if let (false, Some(price)) = (added.is_zero(), &line.price) {
            let terms = format!("minimum {} s, granularity {} s", price.minimum, price.granularity);
            steps.push(format!("of it {added} s were added at the end of the holds: {terms}"));
        }
        Ok(steps)
    }

    /// What it comes to now, what stood, and the difference.
    fn correction(&self, corrects: &CorrectsView) -> Result<Vec<String>, BillingError> {
        let CorrectsView { now, stood, .. } = corrects;
        let stands =
            format!("on documents stood {}: {} {}", self.shown(&stood.quantity), stood.amount, self.currency);
        let comes_to = match self.line.price {
            Some(_) => format!(
                "from all facts it is {} now: × {} {} per {} = {}, rounded {}",
                self.shown(&now.quantity),
                self.line.unit_price,
                self.currency,
                self.line.per,
                self.exact(&now.quantity)?,
                now.amount
            ),
            None => format!("from all facts it is {} {} now", now.amount, self.currency),
        };
        let difference = format!(
            "the difference: {}, {} − {} = {} {}",
            self.shown(&self.line.quantity),
            now.amount,
            stood.amount,
            self.line.amount,
            self.currency
        );
        Ok(vec![comes_to, stands, difference])
    }

    fn times(&self) -> String {
        let line = self.line;
        let hour = if line.per == "hour" { " per hour ÷ 3600" } else { "" };
        format!("{} × {} {}{hour}", self.shown(&line.quantity), line.unit_price, self.currency)
    }

    fn exact(&self, quantity: &str) -> Result<String, BillingError> {
        let line = self.line;
        let price: Decimal = line.unit_price.parse().map_err(|_| self.bad("unit_price", &line.unit_price))?;
        let per = Per::parse(&line.per).ok_or_else(|| self.bad("per", &line.per))?;
        let amount = exact_amount(self.read("quantity", quantity)?, price, per);
        amount.map(exact).ok_or_else(|| self.bad("unit_price", &line.unit_price))
    }

    fn rounded(&self) -> String {
        format!("rounded once, half away from zero: {} {}", self.line.amount, self.currency)
    }
}
