//! Closed periods, as the decision on late facts needs them.

use crate::error::BooksError;
use crate::objects::Objects;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::{HOUR_US, Instant, Window};
use gpuledger_storage::PgConnection;
use gpuledger_storage::closes::{self, StandingClose};
use gpuledger_wire::objects::{PeriodZone, Seller, Tenant};
use std::collections::{BTreeMap, BTreeSet};

/// How long after a close a fact may still change its period, in microseconds, where the seller says nothing: 90 days.
pub const LATENESS_US: i64 = 90 * 24 * HOUR_US;

/// A closed period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Whose; none: it is closed for everyone who is billed, and the instants are those of the last.
    pub tenant: Option<TenantId>,
    /// Which.
    pub period: Period,
    /// Its edges; for everyone, what lies in the period of each.
    pub window: Window,
    /// When it was closed.
    pub closed_at: Instant,
    /// The first instant at which facts that would change it are refused.
    pub refused_from: Instant,
}

/// All periods that are closed: each tenant's, then those that are closed for everyone.
///
/// # Errors
/// The database.
pub async fn closed_periods(
    connection: &mut PgConnection,
    objects: &Objects,
) -> Result<Vec<Closed>, BooksError> {
    let standing = closes::standing(connection).await?;
    let mut all: Vec<Closed> = standing.iter().filter_map(|close| of_tenant(close, objects)).collect();
    let for_everyone = for_everyone(&all, objects);
    all.extend(for_everyone);
    Ok(all)
}

fn of_tenant(close: &StandingClose, objects: &Objects) -> Option<Closed> {
    let terms = Terms::of(objects.tenants.get(&close.tenant)?, objects);
    let period: Period = close.period.parse().ok()?;
    let closed_at = Instant::from_micros(close.closed_at_us);
    Some(Closed {
        tenant: Some(TenantId::new(&close.tenant)),
        period,
        window: period.window(terms.zone).ok()?,
        closed_at,
        refused_from: closed_at.plus(terms.lateness_us.saturating_add(1)),
    })
}

/// Periods that no tenant who is billed has open: a fact about nobody in particular can change nothing else.
fn for_everyone(of_tenants: &[Closed], objects: &Objects) -> Vec<Closed> {
    let billed: BTreeSet<&str> =
        objects.tenants.iter().filter(|(_, t)| is_billed(t)).map(|(id, _)| id.as_str()).collect();
    let mut by_period: BTreeMap<Period, Vec<&Closed>> = BTreeMap::new();
    for closed in of_tenants {
        if closed.tenant.as_ref().is_some_and(|tenant| billed.contains(tenant.as_str())) {
            by_period.entry(closed.period).or_default().push(closed);
        }
    }
    let complete = by_period.into_iter().filter(|(_, closed)| closed.len() == billed.len());
    complete.filter_map(|(period, closed)| together(period, &closed)).collect()
}

fn together(period: Period, closed: &[&Closed]) -> Option<Closed> {
    let window = closed.iter().map(|one| Some(one.window)).reduce(|a, b| a?.intersect(b?))??;
    Some(Closed {
        tenant: None,
        period,
        window,
        closed_at: closed.iter().map(|one| one.closed_at).max()?,
        refused_from: closed.iter().map(|one| one.refused_from).max()?,
    })
}

fn is_billed(tenant: &Tenant) -> bool {
    tenant.customer.is_some() || tenant.currency.is_some()
}

/// What decides a tenant's periods and how long they may still change.
struct Terms {
    zone: chrono_tz::Tz,
    lateness_us: i64,
}

impl Terms {
    fn of(tenant: &Tenant, objects: &Objects) -> Self {
        let customer = tenant.customer.as_ref().and_then(|id| objects.customers.get(id.as_str()));
        let seller = customer.map_or(tenant.seller.as_ref(), |customer| customer.seller.as_ref());
        let zone = customer.map_or(tenant.period_zone, |customer| customer.period_zone);
        let seller: Option<&Seller> = match seller {
            Some(id) => objects.sellers.get(id.as_str()),
            None => objects.sellers.values().next(),
        };
        let seller_zone = seller.and_then(|seller| seller.time_zone);
        let zone = match zone {
            Some(PeriodZone::Tenant) => tenant.time_zone,
            Some(PeriodZone::Seller) | None => seller_zone,
        };
        Self {
            zone: zone.map_or(chrono_tz::UTC, |zone| zone.0),
            lateness_us: seller.and_then(|seller| seller.lateness).map_or(LATENESS_US, |span| span.micros()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_wire::objects::{Object, parse_documents};

    fn objects(yaml: &str) -> Objects {
        let mut objects = Objects::default();
        for object in parse_documents(yaml, "test.yaml").unwrap() {
            let id = object.id();
            match object {
                Object::Seller(seller) => drop(objects.sellers.insert(id, seller)),
                Object::Customer(customer) => drop(objects.customers.insert(id, customer)),
                Object::Tenant(tenant) => drop(objects.tenants.insert(id, tenant)),
                other => panic!("{other:?}"),
            }
        }
        objects
    }

    #[test]
    fn a6_the_sellers_limit_counts_from_each_tenants_close_and_from_the_last_for_everyone() {
        let objects = objects(
            "{kind: Seller, id: de, name: A, country: DE, time_zone: Europe/Berlin, lateness: 1h}\n---\n\
             {kind: Seller, id: us, name: B, country: US}\n---\n\
             {kind: Customer, id: c, name: C, country: DE, currency: EUR, seller: de}\n---\n\
             {kind: Tenant, id: acme, customer: c}\n---\n\
             {kind: Tenant, id: beta, currency: USD, seller: us}\n---\n\
             {kind: Tenant, id: metered-only}",
        );
        let close = |tenant: &str, period: &str, at: i64| StandingClose {
            tenant: tenant.to_owned(),
            period: period.to_owned(),
            closed_at_us: at,
        };
        let closes = [close("acme", "2026-10", 5), close("beta", "2026-10", 9), close("acme", "2026-11", 20)];
        let all: Vec<Closed> = closes.iter().filter_map(|close| of_tenant(close, &objects)).collect();
        let told = |closed: &Closed| {
            let tenant = closed.tenant.as_ref().map_or("everyone", TenantId::as_str).to_owned();
            format!(
                "{tenant} {} {} {}",
                closed.period,
                closed.window.start(),
                closed.refused_from.as_micros()
            )
        };
        assert_eq!(
            all.iter().map(told).collect::<Vec<_>>(),
            [
                "acme 2026-10 2026-09-30T22:00:00Z 3600000006",
                "beta 2026-10 2026-10-01T00:00:00Z 7776000000010",
                "acme 2026-11 2026-10-31T23:00:00Z 3600000021",
            ]
        );
        let everyone: Vec<String> = for_everyone(&all, &objects).iter().map(told).collect();
        assert_eq!(
            everyone,
            ["everyone 2026-10 2026-10-01T00:00:00Z 7776000000010"],
            "November is open for beta"
        );
    }
}
