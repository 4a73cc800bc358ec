//! A tenant's terms, put together from its own object, its customer's and its seller's.

use super::{Catalogue, cards};
use crate::account::{Account, Party};
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::rating::TaxRate;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_wire::objects::{Bank, Customer, PeriodZone, Seller, Tax, Tenant};
use gpuledger_wire::text::Name;

impl Catalogue {
    /// The terms of a tenant.
    ///
    /// # Errors
    /// In words: the tenant is unknown, or an object it needs is.
    pub fn account(&self, tenant: &TenantId) -> Result<Account, String> {
        let object = self
            .tenants
            .get(tenant.as_str())
            .ok_or_else(|| format!("tenant {tenant} is unknown; apply a `kind: Tenant` with that id"))?;
        match &object.customer {
            Some(id) => {
                let customer = self.customers.get(id.as_str()).ok_or_else(|| {
                    format!(
                        "customer {id} of tenant {tenant} is unknown; apply a `kind: Customer` with that id"
                    )
                })?;
                let currency = customer.currency.as_str();
                self.terms(
                    object,
                    customer_party(customer),
                    currency,
                    &customer.tax,
                    &customer.seller,
                    customer.period_zone,
                )
            }
            None => {
                let currency = object.currency.as_ref().ok_or_else(|| {
                    format!("tenant {tenant} has neither a `customer` nor a `currency`; apply one of them")
                })?;
                let party = Party { id: tenant.to_string(), name: name_of(object), ..Party::default() };
                self.terms(object, party, currency.as_str(), &object.tax, &object.seller, object.period_zone)
            }
        }
    }

    fn terms(
        &self,
        tenant: &Tenant,
        customer: Party,
        currency: &str,
        taxes: &[Tax],
        seller: &Option<Name>,
        zone: Option<PeriodZone>,
    ) -> Result<Account, String> {
        let seller = self.seller(seller.as_ref())?;
        let seller_zone = seller.time_zone.map_or(chrono_tz::UTC, |zone| zone.0);
        let tax = |tax: &Tax| {
            let rate = cards::decimal_of(&tax.rate).map_err(|why| format!("tax {}: {why}", tax.name))?;
            Ok::<_, String>(TaxRate { name: tax.name.to_string(), rate })
        };
        Ok(Account {
            tenant: TenantId::new(tenant.id.as_str()),
            tenant_name: name_of(tenant),
            seller: seller_party(seller),
            series: seller.series.as_ref().map(ToString::to_string),
            seller_zone,
            books_open: seller.books_open.map(|time| time.get()),
            customer,
            currency: currency.parse().map_err(|e| format!("tenant {}: {e}", tenant.id))?,
            taxes: taxes.iter().map(tax).collect::<Result<_, _>>()?,
            period_zone: match zone {
                Some(PeriodZone::Tenant) => tenant.time_zone.map_or(chrono_tz::UTC, |zone| zone.0),
                Some(PeriodZone::Seller) | None => seller_zone,
            },
        })
    }

    /// The seller of this id, or the only one.
    fn seller(&self, id: Option<&Name>) -> Result<&Seller, String> {
        match id {
            Some(id) => self
                .sellers
                .get(id.as_str())
                .ok_or_else(|| format!("seller {id} is unknown; apply a `kind: Seller` with that id")),
            None => match self.sellers.len() {
                0 => Err("nobody sells: apply a `kind: Seller`".to_owned()),
                1 => self.sellers.values().next().ok_or_else(|| "nobody sells".to_owned()),
                _ => {
                    let known = self.sellers.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                    Err(format!("there are several sellers ({known}); name one as `seller` of the customer"))
                }
            },
        }
    }

    /// Commitments and credits of a tenant that touch `period`: they cannot be rated, and a bill that left one out would be wrong.
    pub(crate) fn unrated(&self, tenant: &TenantId, period: Window) -> Vec<String> {
        let touches = |from, to| Window::new(from, to).and_then(|w| w.intersect(period)).is_some();
        let commitments = self
            .commitments
            .values()
            .filter(|c| c.tenant.as_str() == tenant.as_str() && touches(c.from.get(), c.to.get()))
            .map(|c| format!("commitment {} cannot be rated by this version", c.id));
        let credits = self
            .credits
            .values()
            .filter(|c| c.tenant.as_str() == tenant.as_str())
            .filter(|c| touches(c.from.get(), c.to.map_or(Instant::MAX, |time| time.get())))
            .map(|c| format!("credit {} cannot be applied by this version", c.id));
        commitments.chain(credits).collect()
    }
}

fn name_of(tenant: &Tenant) -> String {
    tenant.name.as_ref().map_or_else(|| tenant.id.to_string(), |name| name.as_str().to_owned())
}

fn seller_party(seller: &Seller) -> Party {
    Party {
        id: seller.id.to_string(),
        name: seller.name.as_str().to_owned(),
        address: seller.address.as_ref().map(|lines| lines.0.clone()).unwrap_or_default(),
        country: Some(seller.country.as_str().to_owned()),
        vat_id: seller.vat_id.as_ref().map(ToString::to_string),
        bank: seller.bank.as_ref().map(bank_line),
        time_zone: Some(seller.time_zone.map_or("UTC", |zone| zone.name()).to_owned()),
        ..Party::default()
    }
}

fn customer_party(customer: &Customer) -> Party {
    let text = |name: &Option<Name>| name.as_ref().map(ToString::to_string);
    Party {
        id: customer.id.to_string(),
        name: customer.name.as_str().to_owned(),
        address: customer.address.as_ref().map(|lines| lines.0.clone()).unwrap_or_default(),
        country: Some(customer.country.as_str().to_owned()),
        vat_id: text(&customer.vat_id),
        buyer_reference: text(&customer.buyer_reference),
        purchase_order: text(&customer.purchase_order),
        payment_terms: customer.payment_terms.as_ref().map(|terms| terms.as_str().to_owned()),
        ..Party::default()
    }
}

fn bank_line(bank: &Bank) -> String {
    let mut line = format!("IBAN {}", bank.iban);
    if let Some(bic) = &bank.bic {
        line.push_str(&format!(", BIC {bic}"));
    }
    if let Some(name) = &bank.name {
        line.push_str(&format!(", {name}"));
    }
    line
}
