//! A database with objects and facts in it.

use anyhow::{Context, Result, ensure};
use gpuledger_billing::{CloseReport, close_period};
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::time::Instant;
use gpuledger_storage::facts::{NewFact, insert_facts};
use gpuledger_storage::objects::{NewObject, apply};
use gpuledger_storage::{Db, Role, connect, migrate, state};
use gpuledger_wire::decode_structured;
use gpuledger_wire::objects::parse_documents;
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/local/postgres.sh");

/// A seller in UTC whose books open on 1 October 2026, two tenants that pay in USD, and one price.
pub(crate) const OBJECTS: &str = r#"
{kind: Seller, id: gpu-cloud, name: GPU Cloud GmbH, country: DE, time_zone: UTC, books_open: "2026-10-01T00:00:00Z"}
---
{kind: Tenant, id: acme, name: Acme, currency: USD, tax: [{name: VAT, rate: "0.19"}]}
---
{kind: Tenant, id: beta, name: Beta, currency: USD}
---
kind: RateCard
id: standard
currency: USD
effective_from: "2026-01-01T00:00:00Z"
tenants: ["*"]
prices: [{sku: l40s, per: hour, price: "2.40"}, {sku: l4, per: hour, price: "0"}]
"#;

/// A migrated database of its own.
pub(crate) struct Database {
    url: String,
    pub(crate) db: Db,
}

impl Database {
    /// With [`OBJECTS`] and `more` applied.
    pub(crate) async fn new(more: &str) -> Result<Self> {
        server(&["start"], None)?;
        let url = server(&["fresh-db"], None)?;
        let owner = connect(&url, Role::Owner).await?;
        migrate(&owner).await?;
        owner.close().await;
        let books = Self { db: connect(&url, Role::Writer).await?, url };
        books.apply(OBJECTS).await?;
        books.apply(more).await?;
        Ok(books)
    }

    pub(crate) async fn apply(&self, yaml: &str) -> Result<()> {
        let mut tx = self.db.begin().await?;
        for object in parse_documents(yaml, "test.yaml").map_err(|faults| anyhow::anyhow!("{faults:?}"))? {
            let body = object.to_json()?.to_string();
            let new = NewObject { kind: object.kind().to_owned(), id: object.id(), body };
            apply(&mut tx, &new, 0, "test").await?;
        }
        Ok(tx.commit().await?)
    }

    /// Accepts `a GRANT and its release`: allocation, tenant, SKU, start, end. Moves the horizon to `as_of`.
    pub(crate) async fn replay(&self, uses: &[(&str, &str, &str, &str, &str)], as_of: &str) -> Result<()> {
        let mut facts = Vec::new();
        for (allocation, tenant, sku, start, end) in uses {
            let granted = format!(
                r#"{{"allocation":"{allocation}","tenant":"{tenant}","units":[{{"sku":"{sku}","count":1}}],"mode":"exclusive","class":"on_demand"}}"#
            );
            facts.push(fact(&format!("{allocation}-g"), "allocation.granted", start, &granted)?);
            let released = format!(r#"{{"allocation":"{allocation}"}}"#);
            facts.push(fact(&format!("{allocation}-r"), "allocation.released", end, &released)?);
        }
        self.accept(&facts, as_of).await
    }

    /// Accepts facts, each `id type time data`, and moves the horizon to `as_of`.
    pub(crate) async fn say(&self, facts: &[&str], as_of: &str) -> Result<()> {
        let read = |text: &&str| {
            let mut words = text.splitn(4, ' ');
            let mut next = || words.next().context("a fact is `id type time data`");
            fact(next()?, next()?, next()?, next()?)
        };
        self.accept(&facts.iter().map(read).collect::<Result<Vec<_>>>()?, as_of).await
    }

    async fn accept(&self, facts: &[NewFact], as_of: &str) -> Result<()> {
        let mut tx = self.db.begin().await?;
        insert_facts(&mut tx, facts).await?;
        state::advance_horizon(&mut tx, at(as_of)?.as_micros(), "test-rules").await?;
        Ok(tx.commit().await?)
    }

    pub(crate) async fn close(&self, period: &str, tenant: Option<&str>, now: &str) -> Result<CloseReport> {
        let tenant = tenant.map(TenantId::new);
        Ok(close_period(&self.db, period.parse()?, tenant.as_ref(), at(now)?, false).await?)
    }

    pub(crate) async fn drop(self) -> Result<()> {
        self.db.close().await;
        server(&["drop-db"], Some(&self.url)).map(drop)
    }
}

fn fact(id: &str, kind: &str, time: &str, data: &str) -> Result<NewFact> {
    let text = format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"/allocators/t","type":"gpuledger.{kind}.v1","time":"{time}","data":{data}}}"#
    );
    let event = decode_structured(text.as_bytes()).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(NewFact {
        source: event.source.clone(),
        id: event.id.clone(),
        kind: event.type_name().to_owned(),
        at_us: event.time.as_micros(),
        received_at_us: event.time.as_micros(),
        rule_set: "test-rules".to_owned(),
        digest: event.content_digest(),
        body: event.canonical_bytes(),
        subjects: event.subjects(),
        indexed: gpuledger_books::facts::indexed(&event.to_fact()),
    })
}

pub(crate) fn at(text: &str) -> Result<Instant> {
    gpuledger_wire::time::parse_time(text).map_err(|why| anyhow::anyhow!("{text} {why}"))
}

/// Runs the script that serves a private server (or uses `DATABASE_URL`); the last line it prints.
fn server(arguments: &[&str], url: Option<&str>) -> Result<String> {
    let mut command = Command::new(SCRIPT);
    command.args(arguments).envs(url.map(|url| ("DATABASE_URL", url)));
    let output = command.output().context("running postgres.sh")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "postgres.sh {arguments:?} failed: {said}");
    Ok(String::from_utf8(output.stdout)?.lines().last().unwrap_or_default().to_owned())
}
