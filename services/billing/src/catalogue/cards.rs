//! Rate cards as written, to rate cards as rated.

use crate::error::BillingError;
use gpuledger_domain::fact::Class;
use gpuledger_domain::money::Decimal;
use gpuledger_domain::rating::{Lock, Per, Price, RateCard, Term};
use gpuledger_wire::amount::Unsigned;
use gpuledger_wire::objects;
use std::collections::BTreeSet;

pub(super) fn card_of(card: &objects::RateCard) -> Result<RateCard, BillingError> {
    let unreadable =
        |why: String| BillingError::Object { kind: "RateCard".to_owned(), id: card.id.to_string(), why };
    let prices = card.prices.iter().enumerate().map(|(index, price)| {
        price_of(price).map_err(|why| unreadable(format!("prices[{index}].price: {why}")))
    });
    Ok(RateCard {
        id: card.id.to_string(),
        currency: card.currency.as_str().parse().map_err(|e| unreadable(format!("currency: {e}")))?,
        effective_from: card.effective_from.get(),
        tenants: card.tenants.iter().map(ToString::to_string).collect(),
        prices: prices.collect::<Result<_, _>>()?,
        unrated: card_terms(card),
    })
}

fn price_of(price: &objects::Price) -> Result<Price, String> {
    Ok(Price {
        sku: price.sku.to_string(),
        class: price.class.map(Class::from),
        per: match price.per {
            objects::Per::Hour => Per::Hour,
            objects::Per::Unit => Per::Unit,
        },
        // Where tiers say the prices, the term is unrated and this zero is never used.
        price: price.price.as_ref().map_or(Ok(Decimal::default()), decimal_of)?,
        granularity_us: price.granularity.map_or(1, |span| span.micros()).max(1),
        minimum_us: price.minimum.map_or(0, |span| span.micros()),
        lock: match price.lock {
            objects::Lock::AtEvent => Lock::AtEvent,
            objects::Lock::AtStart => Lock::AtStart,
        },
        billed_states: price
            .billed_states
            .as_ref()
            .map(|states| states.iter().map(ToString::to_string).collect()),
        unrated: price_terms(price),
    })
}

/// The exact decimal.
pub(super) fn decimal_of(amount: &Unsigned) -> Result<Decimal, String> {
    amount.to_string().parse().map_err(|e: gpuledger_domain::money::DecimalError| e.to_string())
}

fn price_terms(price: &objects::Price) -> BTreeSet<Term> {
    let stated = [
        (Term::Free, price.free.as_ref().is_some_and(|free| !free.get().is_zero())),
        (Term::Tiers, price.tiers.is_some()),
    ];
    stated.into_iter().filter_map(|(term, is_stated)| is_stated.then_some(term)).collect()
}

fn card_terms(card: &objects::RateCard) -> BTreeSet<Term> {
    let credits = card.service_credits.as_ref().is_some_and(|c| {
        [&c.fault, &c.maintenance, &c.unobserved].into_iter().flatten().any(|part| !part.get().is_zero())
    });
    let minimum = card.minimum_spend.as_ref().is_some_and(|amount| !amount.get().is_zero());
    let stated = [(Term::MinimumSpend, minimum), (Term::ServiceCredits, credits)];
    stated.into_iter().filter_map(|(term, is_stated)| is_stated.then_some(term)).collect()
}
