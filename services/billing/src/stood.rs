//! What documents say of a period, read back as the lines they were made from.

use crate::document::{DetailView, Document, LineView, PriceView};
use crate::error::BillingError;
use gpuledger_domain::fact::Class;
use gpuledger_domain::ids::{AllocationId, ProjectId, SkuId, Source};
use gpuledger_domain::money::{Currency, Money};
use gpuledger_domain::rating::{
    Basis, ChargeKey, Line, LineKey, LineUse, Lock, MeterKey, Per, Period, PriceKey, Quantity, Stood, Terms,
    UsageKey, UseOf,
};
use gpuledger_domain::time::Instant;
use std::collections::BTreeMap;

/// What stands for each line of `period` on the tenant's documents, which come in order of their period.
///
/// # Errors
/// A document cannot be read, or its amounts pass 128 bits.
pub(crate) fn stood<'d>(
    documents: impl IntoIterator<Item = &'d Document>,
    period: Period,
) -> Result<BTreeMap<LineKey, Stood>, BillingError> {
    let mut all: BTreeMap<LineKey, Stood> = BTreeMap::new();
    let period = period.to_string();
    for document in documents {
        for view in document.lines.iter().filter(|line| period_of(document, line) == period) {
            let line = Reader { document, view }.line()?;
            match all.get_mut(&line.key) {
                Some(stood) => stood.add(&line)?,
                None => drop(all.insert(line.key.clone(), Stood { first: view.id.clone(), line })),
            }
        }
    }
    Ok(all)
}

/// The period whose usage a line is for.
fn period_of<'d>(document: &'d Document, line: &'d LineView) -> &'d str {
    line.corrects.as_ref().map_or(&document.period, |corrects| &corrects.period)
}

struct Reader<'d> {
    document: &'d Document,
    view: &'d LineView,
}

impl Reader<'_> {
    fn bad(&self, member: &'static str, text: &str) -> BillingError {
        BillingError::Member { id: self.view.id.clone(), member, text: text.to_owned() }
    }

    fn line(&self) -> Result<Line, BillingError> {
        let view = self.view;
        let uses: Vec<LineUse> = view.details.iter().map(|part| self.part(part)).collect::<Result<_, _>>()?;
        let key = self.key(&uses)?;
        let currency: Currency =
            self.document.currency.parse().map_err(|_| self.bad("currency", &self.document.currency))?;
        Ok(Line {
            terms: view.price.as_ref().map(|price| self.terms(price)).transpose()?,
            description: matches!(key, LineKey::Charge(_)).then(|| view.description.clone()),
            quantity: self.quantity("quantity", &view.quantity)?,
            amount: Money::round(self.quantity("amount", &view.amount)?.value(), currency)?,
            uses,
            key,
        })
    }

    fn key(&self, uses: &[LineUse]) -> Result<LineKey, BillingError> {
        let view = self.view;
        let project = view.project.as_deref().map(ProjectId::new);
        let sku = || view.sku.as_deref().map(SkuId::new).ok_or_else(|| self.bad("sku", ""));
        let price =
            || view.price.as_ref().map_or_else(|| Err(self.bad("price", "")), |price| self.price(price));
        let kind = view.corrects.as_ref().map_or(view.kind.as_str(), |corrects| &corrects.kind);
        Ok(match kind {
            "usage" => LineKey::Usage(UsageKey {
                project,
                sku: sku()?,
                class: self.class()?,
                state: view.state.clone(),
                basis: Basis::parse(&view.basis).ok_or_else(|| self.bad("basis", &view.basis))?,
                price: price()?,
            }),
            "meter" => {
                LineKey::Meter(MeterKey { project, sku: sku()?, unit: view.unit.clone(), price: price()? })
            }
            "charge" => match uses.first().map(|part| &part.of) {
                Some(UseOf::Fact(source, id)) => {
                    LineKey::Charge(ChargeKey { project, source: source.clone(), id: id.clone() })
                }
                _ => return Err(self.bad("details", "")),
            },
            other => return Err(self.bad("kind", other)),
        })
    }

    fn class(&self) -> Result<Class, BillingError> {
        let text = self.view.class.as_deref().unwrap_or_default();
        Class::parse(text).ok_or_else(|| self.bad("class", text))
    }

    fn price(&self, price: &PriceView) -> Result<PriceKey, BillingError> {
        let view = self.view;
        Ok(PriceKey {
            card: price.card.clone(),
            effective_from: self.instant("price.effective_from", &price.effective_from)?,
            index: price.index.parse().map_err(|_| self.bad("price.index", &price.index))?,
            price: view.unit_price.parse().map_err(|_| self.bad("unit_price", &view.unit_price))?,
            per: Per::parse(&view.per).ok_or_else(|| self.bad("per", &view.per))?,
        })
    }

    fn terms(&self, price: &PriceView) -> Result<Terms, BillingError> {
        let micros = |member, text: &str| {
            let us = self.quantity(member, text)?.micros();
            i64::try_from(us).map_err(|_| self.bad(member, text))
        };
        Ok(Terms {
            lock: Lock::parse(&price.lock).ok_or_else(|| self.bad("price.lock", &price.lock))?,
            granularity_us: micros("price.granularity", &price.granularity)?,
            minimum_us: micros("price.minimum", &price.minimum)?,
        })
    }

    fn part(&self, part: &DetailView) -> Result<LineUse, BillingError> {
        let of = match (&part.allocation, &part.unit, &part.source, &part.id) {
            (Some(allocation), Some(unit), None, None) => {
                let unit = unit.parse().map_err(|_| self.bad("details.unit", unit))?;
                UseOf::Unit(AllocationId::new(allocation), unit)
            }
            (None, None, Some(source), Some(id)) => UseOf::Fact(Source::new(source), id.clone()),
            _ => return Err(self.bad("details", "")),
        };
        Ok(LineUse {
            of,
            start: self.instant("details.start", &part.start)?,
            end: self.instant("details.end", &part.end)?,
            quantity: self.quantity("details.quantity", &part.quantity)?,
            added: self.quantity("details.added", &part.added)?,
        })
    }

    fn quantity(&self, member: &'static str, text: &str) -> Result<Quantity, BillingError> {
        text.parse().map_err(|_| self.bad(member, text))
    }

    fn instant(&self, member: &'static str, text: &str) -> Result<Instant, BillingError> {
        gpuledger_wire::time::parse_time(text).map_err(|_| self.bad(member, text))
    }
}
