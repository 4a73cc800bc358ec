//! Closing a period: preconditions, rating, corrections of earlier ones, one draft a tenant (rules V-2, V-3, A-6).

mod open;
mod report;

pub use report::{CloseReport, Closed, Refused};

use crate::account::Account;
use crate::correct::{CorrectError, corrections};
use crate::document::Document;
use crate::draft::{Contents, Correction, Frozen, draft};
use crate::error::BillingError;
use crate::history::{History, carried};
use crate::ledgers::Ledgers;
use crate::rated::{Month, rated};
use crate::trail::{self, Step};
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::money::Money;
use gpuledger_domain::rating::{Period, Rated};
use gpuledger_domain::time::{Instant, Window};
use gpuledger_storage::closes::{self, PeriodClose};
use gpuledger_storage::documents::{self, DocumentRow};
use gpuledger_storage::progress::{self, PartitionRead};
use gpuledger_storage::{Db, PgConnection, facts, parked, state};

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
    let history = History::load(&mut tx).await?;
    let closing = Closing {
        period,
        now,
        ledgers: Ledgers::load(&mut tx, &history.objects_seqs()).await?,
        partitions: progress::all(&mut tx).await?,
        history,
        standing: standing(&mut tx).await?,
    };
    let mut report = CloseReport::new(period, dry_run);
    for tenant in closing.candidates(tenant) {
        match closing.decide(&tenant, &mut report)? {
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
    let parked = parked::count_open(&mut tx).await?;
    report.late_refused = parked.iter().find(|(reason, _)| reason == "late_refused").map_or(0, |(_, n)| *n);
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
    ledgers: Ledgers,
    partitions: Vec<PartitionRead>,
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
        let applied = self.ledgers.now.catalogue.tenants().map(TenantId::new);
        let mut all: Vec<TenantId> = applied.chain(self.unknown()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Tenants without an object that used or were sold something in the period, as the zone of any seller has it.
    fn unknown(&self) -> Vec<TenantId> {
        let Ledgers { now, sold, .. } = &self.ledgers;
        let zones = now.catalogue.zones();
        let windows: Vec<Window> =
            zones.into_iter().filter_map(|zone| self.period.window(zone).ok()).collect();
        let used = |tenant: &&TenantId| windows.iter().any(|window| now.usage.touches(tenant, *window));
        let bought =
            |tenant: &&TenantId| windows.iter().any(|window| sold.touches(tenant, (self.period, *window)));
        now.usage.tenants().filter(used).chain(sold.tenants().filter(bought)).cloned().collect()
    }

    fn decide(&self, tenant: &TenantId, report: &mut CloseReport) -> Result<Decision, BillingError> {
        let account = match self.ledgers.now.catalogue.account(tenant) {
            Ok(account) => account,
            Err(reason) => return Ok(Decision::Refuse(reason)),
        };
        let documents = self.history.documents(tenant)?;
        let closed = self.history.closed(tenant);
        let corrections = match corrections(&self.ledgers, tenant, &closed, &documents, account.currency) {
            Ok(corrections) => corrections,
            Err(CorrectError::Refused(reason)) => return Ok(Decision::Refuse(reason)),
            Err(CorrectError::Failed(error)) => return Err(error),
        };
        // What is closed stands, whatever was opened again or came late before it: closing again changes nothing.
        if self.history.is_closed(tenant, self.period) {
            report.note_late(&account, &corrections, None)?;
            return Ok(Decision::Standing(self.history.document(tenant, self.period)?.map(Box::new)));
        }
        let window = self.period.window(account.period_zone)?;
        let refusal = self.not_yet(&account, window).or_else(|| self.unrated(&account, window));
        if let Some(reason) = refusal {
            report.note_late(&account, &corrections, None)?;
            return Ok(Decision::Refuse(reason));
        }
        let month = Month { account: &account, period: self.period, window };
        let rated = match rated(&self.ledgers.now, &self.ledgers.sold, month, None) {
            Ok(rated) => rated,
            Err(error) => return Ok(Decision::Refuse(error.to_string())),
        };
        report.note_not_billed(&account, &rated);
        report.note_before_books(tenant, self.first_period(&account), &self.ledgers.sold);
        if is_nothing(&rated) && corrections.is_empty() {
            return Ok(Decision::Close(None));
        }
        let carried_in = carried(&documents, &account)?;
        // An amount that fits no number is this tenant's matter; the others close.
        match self.make(account.clone(), window, (&rated, &corrections), carried_in) {
            Ok(made) => {
                report.note_late(&account, &corrections, Some(&made.document.id))?;
                Ok(Decision::Close(Some(Box::new(made))))
            }
            Err(error @ BillingError::Money(_)) => Ok(Decision::Refuse(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Commitments and credits that this version cannot apply.
    fn unrated(&self, account: &Account, window: Window) -> Option<String> {
        let unrated = self.ledgers.now.catalogue.unrated(&account.tenant, window);
        (!unrated.is_empty()).then(|| unrated.join("; "))
    }

    fn make(
        &self,
        account: Account,
        window: Window,
        (rated, corrections): (&Rated, &[Correction]),
        carried_in: Money,
    ) -> Result<Made, BillingError> {
        let attempt = self.history.next_attempt(&account.tenant, self.period);
        let document = draft(&Contents {
            account: &account,
            period: self.period,
            window,
            attempt,
            rated,
            corrections,
            carried_in,
            names: &self.ledgers.now.catalogue.names,
            frozen: &self.standing.frozen,
        })?;
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
            as_of_us: self.ledgers.now.usage.horizon.unwrap_or_default().as_micros(),
            facts_count: frozen.facts_count,
            facts_digest: frozen.facts_digest.clone(),
            facts_seq: self.standing.facts_seq,
            objects_seq: self.ledgers.objects_seq,
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

/// Whether there is nothing to say on a document (V-11).
fn is_nothing(rated: &Rated) -> bool {
    rated.lines.is_empty() && rated.unpriced.is_empty() && rated.unpriced_meters.is_empty()
}
