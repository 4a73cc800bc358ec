//! What is sold besides GPU time: reported usage and recorded charges, as billing sees them (V-13).

use crate::error::BillingError;
use gpuledger_books::facts::event_of;
use gpuledger_domain::ids::{ProjectId, SkuId, Source, TenantId};
use gpuledger_domain::rating::{Period, Recorded, Reported};
use gpuledger_domain::time::{Instant, Window};
use gpuledger_storage::{PgConnection, sold};
use gpuledger_wire::bodies::{ChargeRecorded, UsageReported};
use gpuledger_wire::{Event, EventData};
use std::collections::BTreeMap;

/// Everything that was reported and recorded up to a horizon, by tenant.
#[derive(Clone, Debug, Default)]
pub struct SoldBook {
    by_tenant: BTreeMap<TenantId, OfTenant>,
}

#[derive(Clone, Debug, Default)]
struct OfTenant {
    reported: Vec<Reported>,
    recorded: Vec<Charge>,
}

/// A charge with the period it was recorded for; none: the one of its time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Charge {
    period: Option<Period>,
    recorded: Recorded,
}

/// What belongs to one period of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SoldOf {
    pub(crate) reported: Vec<Reported>,
    pub(crate) recorded: Vec<Recorded>,
}

impl SoldBook {
    /// Reads all of it; facts later than `horizon` do not act yet.
    ///
    /// # Errors
    /// The database, or a fact that cannot be read.
    pub async fn load(connection: &mut PgConnection, horizon: Instant) -> Result<Self, BillingError> {
        let mut book = Self::default();
        for stored in sold::load(connection).await? {
            let event = event_of(&stored)?;
            if event.time <= horizon {
                book.take(&event)?;
            }
        }
        Ok(book)
    }

    fn take(&mut self, event: &Event) -> Result<(), BillingError> {
        match &event.data {
            EventData::UsageReported(usage) => {
                let reported = reported(event, usage)?;
                self.by_tenant.entry(reported.tenant.clone()).or_default().reported.push(reported);
            }
            EventData::ChargeRecorded(charge) => {
                let charge = recorded(event, charge)?;
                self.by_tenant.entry(charge.recorded.tenant.clone()).or_default().recorded.push(charge);
            }
            _ => {}
        }
        Ok(())
    }

    /// Everyone who was sold anything, in order.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.by_tenant.keys()
    }

    /// The first instant at which a tenant was sold anything.
    pub(crate) fn since(&self, tenant: &TenantId) -> Option<Instant> {
        let of = self.by_tenant.get(tenant)?;
        let reported = of.reported.iter().map(|one| one.start);
        reported.chain(of.recorded.iter().map(|one| one.recorded.at)).min()
    }

    /// Everything that was reported of a tenant.
    pub fn reported(&self, tenant: &TenantId) -> &[Reported] {
        self.by_tenant.get(tenant).map_or(&[], |of| &of.reported)
    }

    /// What belongs to a period of a tenant: usage that began in it, and charges recorded for it, or in it without naming one. What happened
    /// before the books open is never charged.
    pub(crate) fn of(&self, tenant: &TenantId, (period, window): (Period, Window), open: Instant) -> SoldOf {
        let Some(of) = self.by_tenant.get(tenant) else { return SoldOf::default() };
        let reported = of.reported.iter().filter(|one| window.contains(one.start) && one.start >= open);
        let recorded =
            of.recorded.iter().filter(|one| one.belongs_to(period, window) && one.recorded.at >= open);
        SoldOf {
            reported: reported.cloned().collect(),
            recorded: recorded.map(|one| one.recorded.clone()).collect(),
        }
    }

    /// Whether anything of a tenant belongs to a period.
    pub(crate) fn touches(&self, tenant: &TenantId, month: (Period, Window)) -> bool {
        let sold = self.of(tenant, month, Instant::MIN);
        !sold.reported.is_empty() || !sold.recorded.is_empty()
    }

    /// The earliest period of a tenant in `zone` that something was sold in.
    pub(crate) fn first(&self, tenant: &TenantId, zone: chrono_tz::Tz) -> Option<Period> {
        let of = self.by_tenant.get(tenant)?;
        let reported = of.reported.iter().map(|one| (one.start, None));
        let recorded = of.recorded.iter().map(|one| (one.recorded.at, one.period));
        let periods = reported.chain(recorded);
        periods.filter_map(|(at, period)| period.or_else(|| Period::containing(at, zone))).min()
    }

    /// Charges of a tenant that were recorded for a period before `first`, the first that is billed: nobody will ever see them on a document.
    pub(crate) fn before(
        &self,
        tenant: &TenantId,
        first: Period,
    ) -> impl Iterator<Item = (&Recorded, Period)> {
        let all = self.by_tenant.get(tenant).into_iter().flat_map(|of| &of.recorded);
        all.filter_map(move |one| Some((&one.recorded, one.period.filter(|period| *period < first)?)))
    }
}

impl Charge {
    fn belongs_to(&self, period: Period, window: Window) -> bool {
        self.period.map_or_else(|| window.contains(self.recorded.at), |own| own == period)
    }
}

fn reported(event: &Event, usage: &UsageReported) -> Result<Reported, BillingError> {
    let quantity = usage.quantity.to_string();
    Ok(Reported {
        source: Source::new(&event.source),
        id: event.id.clone(),
        tenant: TenantId::new(&usage.tenant),
        project: usage.project.as_ref().map(|name| ProjectId::new(name)),
        sku: SkuId::new(&usage.sku),
        unit: usage.unit.to_string(),
        quantity: quantity.parse().map_err(|_| unreadable(event, "quantity", &quantity))?,
        start: usage.start.get(),
        end: usage.end.get(),
    })
}

fn recorded(event: &Event, charge: &ChargeRecorded) -> Result<Charge, BillingError> {
    let (amount, currency) = (charge.amount.to_string(), charge.currency.as_str());
    let period = charge.period.as_ref().map(|period| period.as_str().parse::<Period>()).transpose()?;
    let recorded = Recorded {
        source: Source::new(&event.source),
        id: event.id.clone(),
        tenant: TenantId::new(&charge.tenant),
        project: charge.project.as_ref().map(|name| ProjectId::new(name)),
        description: charge.description.as_str().to_owned(),
        amount: amount.parse().map_err(|_| unreadable(event, "amount", &amount))?,
        currency: currency.parse().map_err(|_| unreadable(event, "currency", currency))?,
        at: event.time,
    };
    Ok(Charge { period, recorded })
}

fn unreadable(event: &Event, member: &'static str, text: &str) -> BillingError {
    BillingError::Member { id: format!("{} {}", event.source, event.id), member, text: text.to_owned() }
}
