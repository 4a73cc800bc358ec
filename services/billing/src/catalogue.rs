//! The business objects a bill is made by: who sells, who pays, who uses, at which prices.

mod account;
mod cards;

use crate::error::BillingError;
use gpuledger_domain::ids::{SkuId, TenantId};
use gpuledger_domain::rating::{RateCard, RateCards, check_cards};
use gpuledger_storage::PgConnection;
use gpuledger_wire::objects::{Commitment, Credit, Customer, Object, Seller, Tenant};
use std::collections::BTreeMap;

/// What stands of all applied objects. Of one id the version applied last counts; of rate cards every `effective_from` stands, and of
/// two with the same one the version applied last (V-12).
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    sellers: BTreeMap<String, Seller>,
    customers: BTreeMap<String, Customer>,
    tenants: BTreeMap<String, Tenant>,
    commitments: BTreeMap<String, Commitment>,
    credits: BTreeMap<String, Credit>,
    /// All prices.
    pub cards: RateCards,
    /// Names of products.
    pub names: BTreeMap<SkuId, String>,
}

impl Catalogue {
    /// What stands of `objects`, which are in the order they were applied in.
    ///
    /// # Errors
    /// A rate card is in no known currency, or a price has more digits than can be rated.
    pub fn new(objects: impl IntoIterator<Item = Object>) -> Result<Self, BillingError> {
        let mut catalogue = Self::default();
        let mut cards: Vec<RateCard> = Vec::new();
        for object in objects {
            match object {
                Object::Seller(seller) => drop(catalogue.sellers.insert(seller.id.to_string(), seller)),
                Object::Customer(customer) => {
                    drop(catalogue.customers.insert(customer.id.to_string(), customer))
                }
                Object::Tenant(tenant) => drop(catalogue.tenants.insert(tenant.id.to_string(), tenant)),
                Object::Commitment(c) => drop(catalogue.commitments.insert(c.id.to_string(), c)),
                Object::Credit(c) => drop(catalogue.credits.insert(c.id.to_string(), c)),
                Object::RateCard(card) => cards.push(cards::card_of(&card)?),
                Object::Sku(sku) => {
                    if let Some(name) = sku.name {
                        catalogue.names.insert(SkuId::new(sku.id.as_str()), name.as_str().to_owned());
                    }
                }
                Object::Mapping(_)
                | Object::Quota(_)
                | Object::Pool(_)
                | Object::Residue(_)
                | Object::FleetCost(_) => {}
            }
        }
        catalogue.cards = RateCards::new(cards);
        Ok(catalogue)
    }

    /// What stands in the database.
    ///
    /// # Errors
    /// The database, or an object that cannot be read.
    pub async fn load(connection: &mut PgConnection) -> Result<Self, BillingError> {
        Self::as_of(&Self::versions(connection).await?, i64::MAX)
    }

    /// What stood when the version with this `seq` was the last.
    pub(crate) fn as_of(versions: &[(i64, Object)], seq: i64) -> Result<Self, BillingError> {
        Self::new(versions.iter().filter(|(own, _)| *own <= seq).map(|(_, object)| object.clone()))
    }

    /// Every version in the order of application, with its `seq`.
    pub(crate) async fn versions(connection: &mut PgConnection) -> Result<Vec<(i64, Object)>, BillingError> {
        let versions = gpuledger_storage::objects::all_versions(connection).await?;
        let read = |version: &gpuledger_storage::objects::ObjectVersion| {
            let unreadable = |why: String| BillingError::Object {
                kind: version.kind.clone(),
                id: version.id.clone(),
                why,
            };
            let value = serde_json::from_str(&version.body).map_err(|e| unreadable(e.to_string()))?;
            let object = Object::from_json(&value).map_err(|e| unreadable(e.to_string()))?;
            Ok((version.seq, object))
        };
        versions.iter().map(read).collect()
    }

    /// What is wrong between the objects, for `apply` to refuse: prices that fit equally well (V-12).
    pub fn conflicts(&self) -> Vec<String> {
        check_cards(&self.cards).iter().map(ToString::to_string).collect()
    }

    /// Whether a tenant has an object.
    pub(crate) fn knows(&self, tenant: &TenantId) -> bool {
        self.tenants.contains_key(tenant.as_str())
    }

    /// Ids of the tenants that can get a document: they have a customer or a currency. In order.
    pub fn tenants(&self) -> impl Iterator<Item = &str> {
        let billed =
            self.tenants.iter().filter(|(_, tenant)| tenant.customer.is_some() || tenant.currency.is_some());
        billed.map(|(id, _)| id.as_str())
    }

    /// The zones of the sellers; UTC where there is none.
    pub(crate) fn zones(&self) -> Vec<chrono_tz::Tz> {
        let zones: Vec<_> =
            self.sellers.values().map(|s| s.time_zone.map_or(chrono_tz::UTC, |zone| zone.0)).collect();
        if zones.is_empty() { vec![chrono_tz::UTC] } else { zones }
    }
}

#[cfg(test)]
mod tests;
