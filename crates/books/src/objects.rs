//! Business objects as they stand: the latest version of each, and every version of a rate card, which is in effect from its own date.

use crate::error::BooksError;
use chrono_tz::Tz;
use gpuledger_domain::ids::{SkuId, TenantId};
use gpuledger_domain::pool::Pools;
use gpuledger_domain::residue::Sets;
use gpuledger_domain::sku::SkuBook;
use gpuledger_storage::PgConnection;
use gpuledger_storage::objects::{ObjectVersion, all_versions};
use gpuledger_wire::objects::{Customer, Matcher, Object, Pool, RateCard, Residue, Seller, Sku, Tenant};
use std::collections::BTreeMap;

/// All objects that stand.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Who issues invoices, by id.
    pub sellers: BTreeMap<String, Seller>,
    /// Who pays, by id.
    pub customers: BTreeMap<String, Customer>,
    /// Who uses, by id.
    pub tenants: BTreeMap<String, Tenant>,
    /// Priced kinds of units, by id.
    pub skus: BTreeMap<String, Sku>,
    /// By what the time of shared or served units is divided, by id.
    pub pools: BTreeMap<String, Pool>,
    /// What is sanitised between tenants, by id.
    pub residue: BTreeMap<String, Residue>,
    /// Prices, in order of id and first instant; one that was applied again from the same instant stands as applied last.
    pub rate_cards: Vec<RateCard>,
}

/// Loads what was applied.
///
/// # Errors
/// The database, or an object that cannot be read.
pub async fn load(connection: &mut PgConnection) -> Result<Objects, BooksError> {
    load_until(connection, i64::MAX).await
}

/// Loads what was applied up to the version with this `seq`, as it stood then.
///
/// # Errors
/// The database, or an object that cannot be read.
pub async fn load_until(connection: &mut PgConnection, seq: i64) -> Result<Objects, BooksError> {
    let mut objects = Objects::default();
    let mut cards = BTreeMap::new();
    for version in all_versions(connection).await?.iter().filter(|version| version.seq <= seq) {
        objects.take(read(version)?, &mut cards);
    }
    objects.rate_cards = cards.into_values().collect();
    Ok(objects)
}

fn read(version: &ObjectVersion) -> Result<Object, BooksError> {
    let fault = |why: String| BooksError::Object { kind: version.kind.clone(), id: version.id.clone(), why };
    let value = serde_json::from_str(&version.body).map_err(|error| fault(error.to_string()))?;
    Object::from_json(&value).map_err(|error| fault(error.to_string()))
}

impl Objects {
    /// Versions come in the order they were applied, so a later one replaces an earlier one.
    fn take(&mut self, object: Object, cards: &mut BTreeMap<(String, i64), RateCard>) {
        let id = object.id();
        match object {
            Object::Seller(seller) => drop(self.sellers.insert(id, seller)),
            Object::Customer(customer) => drop(self.customers.insert(id, customer)),
            Object::Tenant(tenant) => drop(self.tenants.insert(id, tenant)),
            Object::Sku(sku) => drop(self.skus.insert(id, sku)),
            Object::Pool(pool) => drop(self.pools.insert(id, pool)),
            Object::Residue(set) => drop(self.residue.insert(id, set)),
            Object::RateCard(card) => drop(cards.insert((id, card.effective_from.get().as_micros()), card)),
            Object::Mapping(_)
            | Object::Commitment(_)
            | Object::Credit(_)
            | Object::Quota(_)
            | Object::FleetCost(_) => {}
        }
    }

    /// Zones of tenants for reports.
    pub fn zones(&self) -> BTreeMap<TenantId, Tz> {
        let zones =
            self.tenants.iter().filter_map(|(id, tenant)| Some((TenantId::new(id), tenant.time_zone?.0)));
        zones.collect()
    }

    /// Pools as the rules see them. One that was applied later divides all time: a pool has no date of its own.
    pub fn pools(&self) -> Pools {
        self.pools.iter().map(|(id, pool)| (id.clone(), pool.rule())).collect()
    }

    /// Sets of residue as the rules see them. One that was applied later rules all time: a set has no date of its own.
    pub fn residue_sets(&self) -> Sets {
        Sets(self.residue.values().map(Residue::rule).collect())
    }

    /// Which id each foreign name stands for.
    pub fn sku_book(&self) -> SkuBook {
        let mut book = SkuBook::default();
        for (id, sku) in &self.skus {
            for matcher in &sku.r#match {
                match matcher {
                    Matcher::Model(name) => drop(book.by_model.insert(name.to_string(), SkuId::new(id))),
                    Matcher::Gres(name) => {
                        book.by_name.insert(name.to_string(), SkuId::new(id));
                        if let Some(kind) = name.strip_prefix("gpu:") {
                            book.by_name.insert(kind.to_owned(), SkuId::new(id));
                        }
                    }
                    Matcher::Label(name) => {
                        book.by_name.insert(name.to_string(), SkuId::new(id));
                        book.by_name.insert(name.to_lowercase(), SkuId::new(id));
                    }
                }
            }
        }
        book
    }
}
