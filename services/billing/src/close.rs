//! Closing a period: preconditions, rating, one draft a tenant (rules V-2, V-3).

use crate::account::Account;
use crate::catalogue::Catalogue;
use crate::document::Document;
use crate::draft::{Frozen, draft};
use crate::error::BillingError;
use crate::history::History;
use crate::late::{Late, billed_us, priced_us};
use crate::trail::{self, Step};
use crate::usage::{self, Usage};
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::rating::{Period, Rated, Rating, UnitUse, price, rate};
use gpuledger_domain::time::{Instant, Window};
use gpuledger_storage::closes::{self, PeriodClose};
use gpuledger_storage::documents::{self, DocumentRow};
use gpuledger_storage::{Db, PgConnection, facts, state};

/// What became of a close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseReport {
    /// The period.
    pub period: Period,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Tenants whose period is closed, in order.
    pub closed: Vec<Closed>,
    /// Tenants whose period could not be closed, in order, with why.
    pub refused: Vec<Refused>,
    /// Closed periods, this one and earlier ones, whose usage changed after their close.
    pub late: Vec<Late>,
}

/// A tenant whose period is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Who.
    pub tenant: String,
    /// Its document; none where there was nothing to bill (V-11).
    pub document: Option<Document>,
    /// Whether this close made it; else it was closed before.
    pub is_new: bool,
}

/// A tenant whose period, or a document, that stays as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Who.
    pub tenant: String,
    /// In words.
    pub reason: String,
}

impl CloseReport {
    /// Whether every tenant asked for is closed.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty()
    }
}

/// Closes `period` for `tenant`, or for every tenant. Each tenant is closed or named with the reason; closing again changes nothing.
/// `now` is the server's clock.
///
/// # Errors
/// The database, or a stored fact, object or document that cannot be read. Nothing is written then.
pub async fn close_period(
    db: &Db,
    period: Period,
    tenant: Option<&TenantId>,
    now: Instant,
    dry_run: bool,
) -> Result<CloseReport, BillingError> {
    let mut tx = db.begin().await?;
    // From here to the end no batch is accepted: a fact is either in what is frozen now, or later.
    closes::hold_closing(&mut tx).await?;
    let closing = Closing {
        period,
        now,
        catalogue: Catalogue::load(&mut tx).await?,
        usage: usage::load(&mut tx).await?,
        history: History::load(&mut tx).await?,
        standing: standing(&mut tx).await?,
    };
    let mut report =
        CloseReport { period, dry_run, closed: Vec::new(), refused: Vec::new(), late: Vec::new() };
    for tenant in closing.candidates(tenant) {
        report.late.extend(closing.late(&tenant)?);
        match closing.decide(&tenant)? {
            Decision::Refuse(reason) => report.refused.push(Refused { tenant: tenant.to_string(), reason }),
            Decision::Standing(document) => {
                let document = document.map(|boxed| *boxed);
                report.closed.push(Closed { tenant: tenant.to_string(), document, is_new: false });
            }
            Decision::Close(made) => {
                closing.write(&mut tx, &tenant, made.as_deref()).await?;
                let document = made.map(|made| made.document);
                report.closed.push(Closed { tenant: tenant.to_string(), document, is_new: true });
            }
        }
    }
    if dry_run {
        tx.rollback().await?
    } else {
        tx.commit().await?
    }
    Ok(report)
}

/// What all closes of this moment freeze.
async fn standing(tx: &mut PgConnection) -> Result<Standing, BillingError> {
    let digest = facts::digest_all(tx).await?;
    let rule_set = state::load(tx).await?.rule_set.unwrap_or_default();
    let frozen = Frozen { rule_set, facts_count: digest.count, facts_digest: digest.digest.to_vec() };
    Ok(Standing { frozen, facts_seq: digest.last_seq })
}

struct Standing {
    frozen: Frozen,
    facts_seq: i64,
}

struct Closing {
    period: Period,
    now: Instant,
    catalogue: Catalogue,
    usage: Usage,
    history: History,
    standing: Standing,
}

enum Decision {
    Refuse(String),
    Standing(Option<Box<Document>>),
    Close(Option<Box<Made>>),
}

struct Made {
    account: Account,
    attempt: i32,
    series: String,
    document: Document,
}

impl Closing {
    /// Whom to close: the one asked for; else every applied tenant and everyone with usage, so that the unknown are named.
    fn candidates(&self, tenant: Option<&TenantId>) -> Vec<TenantId> {
        if let Some(tenant) = tenant {
            return vec![tenant.clone()];
        }
        let applied = self.catalogue.tenants().map(TenantId::new);
        let mut all: Vec<TenantId> = applied.chain(self.unknown()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Tenants without an object that used something in the period, as the zone of any seller has it.
    fn unknown(&self) -> Vec<TenantId> {
        let windows: Vec<Window> =
            self.catalogue.zones().into_iter().filter_map(|zone| self.period.window(zone).ok()).collect();
        let used = |tenant: &&TenantId| windows.iter().any(|window| self.usage.touches(tenant, *window));
        self.usage.tenants().filter(used).cloned().collect()
    }

    fn decide(&self, tenant: &TenantId) -> Result<Decision, BillingError> {
        let account = match self.catalogue.account(tenant) {
            Ok(account) => account,
            Err(reason) => return Ok(Decision::Refuse(reason)),
        };
        // What is closed stands, whatever was opened again or came late before it: closing again changes nothing.
        if self.history.is_closed(tenant, self.period) {
            return Ok(Decision::Standing(self.history.document(tenant, self.period)?.map(Box::new)));
        }
        let window = self.period.window(account.period_zone)?;
        if let Some(reason) = self.too_early(&account, window) {
            return Ok(Decision::Refuse(reason));
        }
        match self.rated(&account, window) {
            Ok(rated) if rated.lines.is_empty() && rated.unpriced.is_empty() => Ok(Decision::Close(None)),
            // An amount that fits no number is this tenant's matter; the others close.
            Ok(rated) => Ok(match self.make(account, window, &rated) {
                Ok(made) => Decision::Close(Some(Box::new(made))),
                Err(error @ BillingError::Money(_)) => Decision::Refuse(error.to_string()),
                Err(error) => return Err(error),
            }),
            Err(reason) => Ok(Decision::Refuse(reason)),
        }
    }

    /// Why the period cannot be closed yet, or none.
    fn too_early(&self, account: &Account, window: Window) -> Option<String> {
        let period = self.period;
        if self.now < window.end() {
            return Some(format!(
                "period {period} is not over before {} ({})",
                window.end(),
                account.period_zone.name()
            ));
        }
        match self.usage.horizon {
            Some(horizon) if horizon >= window.end() => {}
            Some(horizon) => {
                return Some(format!(
                    "the ledger has come to {horizon} only, period {period} ends at {}",
                    window.end()
                ));
            }
            None => {
                return Some(format!(
                    "the ledger has no facts yet, period {period} ends at {}",
                    window.end()
                ));
            }
        }
        let open = self.first_open(account).filter(|open| *open < period)?;
        Some(format!("period {open} comes before {period} and is not closed; close it first"))
    }

    /// The earliest period of a tenant that is not closed: counted from the one that contains `books_open`, else from its first use.
    fn first_open(&self, account: &Account) -> Option<Period> {
        let first = account.books_open.or_else(|| self.usage.first(&account.tenant))?;
        let mut period = Period::containing(first, account.period_zone)?;
        while period < self.period && self.history.is_closed(&account.tenant, period) {
            period = period.next()?;
        }
        Some(period)
    }

    /// The tenant's usage of the period, or why it cannot be rated.
    fn rated(&self, account: &Account, window: Window) -> Result<Rated, String> {
        let unrated = self.catalogue.unrated(&account.tenant, window);
        if !unrated.is_empty() {
            return Err(unrated.join("; "));
        }
        rate(&self.units(account), self.rating(account, window)).map_err(|error| error.to_string())
    }

    fn units(&self, account: &Account) -> Vec<UnitUse> {
        self.usage.units(&account.tenant, account.books_open.unwrap_or(Instant::MIN))
    }

    fn rating<'a>(&'a self, account: &'a Account, period: Window) -> Rating<'a> {
        Rating { tenant: &account.tenant, period, currency: account.currency, cards: &self.catalogue.cards }
    }

    /// The tenant's closed periods up to this one whose usage is not what was billed.
    fn late(&self, tenant: &TenantId) -> Result<Vec<Late>, BillingError> {
        let Ok(account) = self.catalogue.account(tenant) else { return Ok(Vec::new()) };
        let mut late = Vec::new();
        for period in self.history.closed_until(tenant, self.period) {
            let window = period.window(account.period_zone)?;
            // Prices that cannot be chosen are said where they are needed.
            let Ok(priced) = price(&self.units(&account), self.rating(&account, window)) else { continue };
            let billed_us = billed_us(self.history.document(tenant, period)?.as_ref())?;
            let now_us = priced_us(&priced);
            if now_us != billed_us {
                late.push(Late { tenant: tenant.to_string(), period, billed_us, now_us });
            }
        }
        Ok(late)
    }

    fn make(&self, account: Account, window: Window, rated: &Rated) -> Result<Made, BillingError> {
        let attempt = self.history.next_attempt(&account.tenant, self.period);
        let names = &self.catalogue.names;
        let document = draft(&account, (self.period, window), attempt, rated, names, &self.standing.frozen)?;
        let series = account.series.clone().unwrap_or_else(|| format!("INV-{}", self.period.year()));
        Ok(Made { account, attempt, series, document })
    }

    async fn write(
        &self,
        tx: &mut PgConnection,
        tenant: &TenantId,
        made: Option<&Made>,
    ) -> Result<(), BillingError> {
        if let Some(made) = made {
            documents::insert_draft(tx, &self.row(made)?).await?;
            trail::document(tx, Step::Drafted, &made.document, self.now).await?;
        }
        let frozen = &self.standing.frozen;
        let close = PeriodClose {
            seq: 0,
            period: self.period.to_string(),
            tenant: tenant.to_string(),
            as_of_us: self.usage.horizon.unwrap_or_default().as_micros(),
            facts_count: frozen.facts_count,
            facts_digest: frozen.facts_digest.clone(),
            facts_seq: self.standing.facts_seq,
            rule_set: frozen.rule_set.clone(),
            closed_at_us: self.now.as_micros(),
        };
        closes::insert(tx, &close).await?;
        trail::close(tx, &close).await
    }

    fn row(&self, made: &Made) -> Result<DocumentRow, BillingError> {
        Ok(DocumentRow {
            id: made.document.id.clone(),
            number: None,
            kind: made.document.kind.clone(),
            status: made.document.status.clone(),
            seller: made.account.seller.id.clone(),
            series: made.series.clone(),
            customer: made.account.customer.id.clone(),
            tenant: made.document.tenant.clone(),
            period: made.document.period.clone(),
            attempt: made.attempt,
            body: crate::render::json(&made.document)?,
            created_at_us: self.now.as_micros(),
            issued_at_us: None,
            paid_at_us: None,
        })
    }
}
