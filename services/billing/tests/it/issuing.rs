//! Numbers without gaps, and what is never issued.

use crate::books::{Database, at};
use anyhow::Result;
use gpuledger_billing::catalogue::Catalogue;
use gpuledger_billing::sold::SoldBook;
use gpuledger_billing::{BillingError, Issue, Which, explain, issue, show, unpriced_findings};
use gpuledger_books::Books;

#[tokio::test]
async fn v11_no_price_stops_the_issue_and_a_price_of_zero_does_not() -> Result<()> {
    let books = Database::new("").await?;
    let hour =
        |allocation, tenant, sku| (allocation, tenant, sku, "2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z");
    let uses = [hour("a-1", "acme", "l40s"), hour("a-2", "acme", "b200"), hour("b-1", "beta", "l4")];
    books.replay(&uses, "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    let acme = Which::Period { tenant: "acme", period: "2026-10" };
    let refused = issue(&books.db, Issue::One(acme), at("2026-11-02T00:00:00Z")?).await?;
    assert!(refused.issued.is_empty() && refused.refused[0].reason.contains("(b200)"), "{refused:?}");
    let report =
        issue(&books.db, Issue::All { period: Some("2026-10") }, at("2026-11-02T00:00:00Z")?).await?;
    assert_eq!(report.issued[0].number.as_deref(), Some("INV-2026-0001"), "the refused draft took no number");
    assert_eq!(report.issued[0].lines[0].amount, "0.00");
    let draft = show(&books.db, acme).await?;
    assert_eq!((draft.status.as_str(), draft.subtotal.as_str(), draft.unpriced.len()), ("draft", "2.40", 1));
    let mut tx = books.db.snapshot().await?;
    let (ledger, catalogue) = (Books::load(&mut tx).await?, Catalogue::load(&mut tx).await?);
    let as_of = at("2026-11-02T00:00:00Z")?;
    let sold = SoldBook::load(&mut tx, as_of).await?;
    let findings = unpriced_findings(&catalogue, &sold, ledger.attribute(as_of), as_of)?;
    assert_eq!(findings.iter().map(|f| f.subject.as_str()).collect::<Vec<_>>(), ["a-2"]);
    drop(tx);
    books.drop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn v2_numbers_are_gapless_in_tenant_order_however_many_issue_at_once() -> Result<()> {
    let books = Database::new("{kind: Tenant, id: gamma, currency: USD}").await?;
    let hour =
        |allocation, tenant| (allocation, tenant, "l40s", "2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z");
    books.replay(&[hour("c", "gamma"), hour("a", "acme"), hour("b", "beta")], "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    let now = at("2026-11-02T00:00:00Z")?;
    let all = Issue::All { period: Some("2026-10") };
    let (one, two) = tokio::join!(issue(&books.db, all, now), issue(&books.db, all, now));
    for report in [one?, two?] {
        let numbers: Vec<_> =
            report.issued.iter().map(|d| (d.tenant.as_str(), d.number.as_deref().unwrap_or(""))).collect();
        assert_eq!(
            numbers,
            [("acme", "INV-2026-0001"), ("beta", "INV-2026-0002"), ("gamma", "INV-2026-0003")]
        );
        assert_eq!(report.issued[0].issued_on.as_deref(), Some("2026-11-02"));
    }
    assert_eq!(show(&books.db, Which::Id("INV-2026-0002")).await?.tenant, "beta");
    let error = gpuledger_billing::discard(&books.db, Which::Id("INV-2026-0002"), now).await.unwrap_err();
    assert!(matches!(error, BillingError::NotADraft { .. }), "{error}");
    books.drop().await
}

#[tokio::test]
async fn a_line_leads_back_to_its_facts() -> Result<()> {
    let books = Database::new("").await?;
    books
        .replay(
            &[("a-1", "acme", "l40s", "2026-10-05T00:00:00Z", "2026-10-05T01:00:00Z")],
            "2026-11-02T00:00:00Z",
        )
        .await?;
    books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    let why = explain(&books.db, "inv-2026-10-acme-1.1").await?;
    let facts: Vec<&str> = why.facts.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(facts, ["a-1-g", "a-1-r"]);
    assert!(why.facts.iter().all(|f| f.digest.len() == 64 && f.kind.starts_with("gpuledger.allocation.")));
    assert!(why.text().contains("3600 s × 2.40 USD per hour ÷ 3600 = 2.4"), "{}", why.text());
    for missing in ["inv-2026-10-acme-1.2", "inv-2026-10-acme-9.1", "nonsense"] {
        assert!(matches!(explain(&books.db, missing).await, Err(BillingError::NotFound(_))), "{missing}");
    }
    books.drop().await
}

#[tokio::test]
async fn a_line_leads_back_to_where_it_ran_and_to_the_states_of_its_devices() -> Result<()> {
    let books = Database::new("").await?;
    let gpu = |n: u8| {
        format!(
            r#"{{"uuid":"GPU-{n}","index":{n},"model":"NVIDIA L40S","memory_bytes":48000000000,"compute_slices":1,"memory_slices":1,"mig":false,"state":"ok","instances":[]}}"#
        )
    };
    let inventory = format!(
        r#"inv node.inventory 2026-10-01T00:00:00Z {{"node":"n1","boot_id":"b","gpus":[{},{}]}}"#,
        gpu(1),
        gpu(2)
    );
    let facts = [
        inventory.as_str(),
        r#"g allocation.granted 2026-10-05T00:00:00Z {"allocation":"a-1","tenant":"acme","units":[{"sku":"l40s","count":1}],"mode":"exclusive","class":"on_demand","runtime":{"slurm_job":"5"}}"#,
        r#"p allocation.placed 2026-10-05T00:00:10Z {"runtime":{"slurm_job":"5"},"units":[{"gpu":"GPU-1"}]}"#,
        r#"s-before unit.state 2026-10-03T00:00:00Z {"gpu":"GPU-1","state":"maintenance"}"#,
        r#"s-stands unit.state 2026-10-04T00:00:00Z {"gpu":"GPU-1","state":"ok"}"#,
        r#"s-fault unit.state 2026-10-05T00:20:00Z {"gpu":"GPU-1","state":"fault","cause":"hardware"}"#,
        r#"s-ok unit.state 2026-10-05T00:30:00Z {"gpu":"GPU-1","state":"ok"}"#,
        r#"s-other unit.state 2026-10-05T00:20:00Z {"gpu":"GPU-2","state":"fault","cause":"hardware"}"#,
        r#"r allocation.released 2026-10-05T01:00:00Z {"allocation":"a-1"}"#,
        r#"p-later allocation.placed 2026-10-05T01:30:00Z {"runtime":{"slurm_job":"5"},"units":[{"gpu":"GPU-2"}]}"#,
        r#"s-after unit.state 2026-10-05T01:00:00Z {"gpu":"GPU-1","state":"maintenance"}"#,
    ];
    books.say(&facts, "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    let why = explain(&books.db, "inv-2026-10-acme-1.1").await?;
    assert_eq!(why.line.quantity, "3000", "without the fault");
    let ids: Vec<&str> = why.facts.iter().map(|fact| fact.id.as_str()).collect();
    assert_eq!(ids, ["s-stands", "g", "p", "s-fault", "s-ok", "r"]);
    books.drop().await
}
