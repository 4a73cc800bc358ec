//! Lines, taxes and usage without a price as a document shows them.

use super::Contents;
use crate::document::{
    CorrectsView, DetailView, FigureView, LineTaxView, LineView, NotBilledView, PriceView, TaxView,
    UnpricedView,
};
use crate::text::seconds;
use gpuledger_domain::ids::SkuId;
use gpuledger_domain::money::Money;
use gpuledger_domain::rating::{
    Adjustment, Figure, Line, LineKey, LineUse, Per, Period, PriceKey, Rated, Recorded, Tax, Terms, Unpriced,
    UnpricedMeter, UseOf,
};
use std::collections::BTreeMap;

/// All lines of a document, numbered.
pub(super) fn lines(id: &str, contents: &Contents<'_>, taxes: &[Tax]) -> Vec<LineView> {
    let own = contents.rated.lines.iter().map(|line| line_view(line, contents.names));
    let corrections = contents.corrections.iter();
    let late =
        corrections.flat_map(|c| c.adjustments.iter().map(|one| adjustment(c.period, one, contents.names)));
    let numbered = own.chain(late).enumerate().map(|(index, line)| LineView {
        id: format!("{id}.{}", index + 1),
        taxes: taxes.iter().map(|tax| line_tax(tax, index)).collect(),
        ..line
    });
    numbered.collect()
}

fn adjustment(period: Period, one: &Adjustment, names: &BTreeMap<SkuId, String>) -> LineView {
    let line = line_view(&one.line, names);
    let corrects = CorrectsView {
        period: period.to_string(),
        line: one.corrects.clone(),
        kind: line.kind,
        now: figure(one.now),
        stood: figure(one.stood),
    };
    LineView { kind: "adjustment".to_owned(), corrects: Some(corrects), ..line }
}

fn figure(figure: Figure) -> FigureView {
    FigureView { quantity: figure.quantity.to_string(), amount: figure.amount.to_string() }
}

/// A line without its number and its part of the taxes.
fn line_view(line: &Line, names: &BTreeMap<SkuId, String>) -> LineView {
    let key = &line.key;
    let text = |word: &str| word.to_owned();
    let (class, state, unit, basis) = match key {
        LineKey::Usage(key) => (Some(key.class), key.state.clone(), text("second"), key.basis.as_str()),
        LineKey::Meter(key) => (None, None, key.unit.clone(), "meter"),
        LineKey::Charge(_) => (None, None, text("charge"), "charge"),
    };
    let unit_price = match key.price() {
        Some(price) => price.price.with_places(line.amount.currency().exponent()),
        None => line.amount.to_string(),
    };
    LineView {
        id: String::new(),
        kind: text(key.kind()),
        project: key.project().map(ToString::to_string),
        sku: key.sku().map(ToString::to_string),
        description: match (&line.description, key.sku()) {
            (Some(description), _) => description.clone(),
            (None, sku) => sku.map(|sku| described(sku, names)).unwrap_or_default(),
        },
        class: class.map(|class| text(class.as_str())),
        state,
        quantity: line.quantity.to_string(),
        unit,
        unit_price,
        per: text(key.price().map_or(Per::Unit, |price| price.per).as_str()),
        amount: line.amount.to_string(),
        basis: text(basis),
        corrects: None,
        taxes: Vec::new(),
        price: key.price().zip(line.terms).map(|(price, terms)| price_view(price, terms)),
        details: line.uses.iter().map(detail).collect(),
    }
}

fn price_view(price: &PriceKey, terms: Terms) -> PriceView {
    PriceView {
        card: price.card.clone(),
        effective_from: price.effective_from.to_string(),
        index: price.index.to_string(),
        lock: terms.lock.as_str().to_owned(),
        granularity: seconds(i128::from(terms.granularity_us)),
        minimum: seconds(i128::from(terms.minimum_us)),
    }
}

/// The name of the longest part of the SKU that has one, and the rest of the id: `NVIDIA H100 80 GB, 3g.40gb`.
pub(super) fn described(sku: &SkuId, names: &BTreeMap<SkuId, String>) -> String {
    let text = sku.as_str();
    let cuts = std::iter::once(text.len()).chain(text.rmatch_indices('/').map(|(at, _)| at));
    for cut in cuts {
        let (head, rest) = text.split_at(cut);
        if let Some(name) = names.get(&SkuId::new(head)) {
            return std::iter::once(name.as_str())
                .chain(rest.split('/').skip(1))
                .collect::<Vec<_>>()
                .join(", ");
        }
    }
    text.to_owned()
}

fn line_tax(tax: &Tax, index: usize) -> LineTaxView {
    let amount = tax.by_line.get(index).copied().unwrap_or(Money::zero(tax.base.currency()));
    LineTaxView { name: tax.name.clone(), amount: amount.to_string() }
}

fn detail(part: &LineUse) -> DetailView {
    let (allocation, unit, source, id) = match &part.of {
        UseOf::Unit(allocation, unit) => (Some(allocation.to_string()), Some(unit.to_string()), None, None),
        UseOf::Fact(source, id) => (None, None, Some(source.to_string()), Some(id.clone())),
    };
    DetailView {
        allocation,
        unit,
        source,
        id,
        start: part.start.to_string(),
        end: part.end.to_string(),
        quantity: part.quantity.to_string(),
        added: part.added.to_string(),
    }
}

/// Usage without a price, of allocations and of meters.
pub(crate) fn unpriced(rated: &Rated) -> impl Iterator<Item = UnpricedView> {
    rated.unpriced.iter().map(unpriced_usage).chain(rated.unpriced_meters.iter().map(unpriced_meter))
}

fn unpriced_usage(unpriced: &Unpriced) -> UnpricedView {
    UnpricedView {
        allocation: Some(unpriced.allocation.to_string()),
        sku: unpriced.sku.to_string(),
        class: Some(unpriced.class.as_str().to_owned()),
        start: unpriced.window.start().to_string(),
        end: unpriced.window.end().to_string(),
        quantity: seconds(unpriced.quantity_us),
        unit: None,
        period: None,
    }
}

fn unpriced_meter(unpriced: &UnpricedMeter) -> UnpricedView {
    UnpricedView {
        allocation: None,
        sku: unpriced.sku.to_string(),
        class: None,
        start: unpriced.start.to_string(),
        end: unpriced.end.to_string(),
        quantity: unpriced.quantity.to_string(),
        unit: Some(unpriced.unit.clone()),
        period: None,
    }
}

pub(super) fn not_billed(one: &Recorded) -> NotBilledView {
    NotBilledView {
        source: one.source.to_string(),
        id: one.id.clone(),
        description: one.description.clone(),
        amount: one.amount.to_string(),
        currency: one.currency.code().to_owned(),
    }
}

pub(super) fn tax(tax: &Tax) -> TaxView {
    TaxView {
        name: tax.name.clone(),
        rate: tax.rate.to_string(),
        base: tax.base.to_string(),
        amount: tax.amount.to_string(),
    }
}
