//! Other things sold (V-13): reported usage and recorded charges on documents, beside GPU time.

use crate::books::{Database, at};
use crate::closing::told;
use anyhow::Result;
use gpuledger_billing::catalogue::Catalogue;
use gpuledger_billing::sold::SoldBook;
use gpuledger_billing::{Which, explain, render, show, unpriced_findings};
use gpuledger_books::Books;

const CARD: &str = r#"{kind: RateCard, id: things, currency: USD, effective_from: "2026-01-01T00:00:00Z", tenants: ["*"], prices: [{sku: storage-gib, per: unit, price: "0.0001"}]}"#;

const FACTS: [&str; 6] = [
    r#"u-1 usage.reported 2026-10-05T00:00:00Z {"tenant":"acme","project":"vision","sku":"storage-gib","quantity":"12500","unit":"gib","start":"2026-10-04T00:00:00Z","end":"2026-10-05T00:00:00Z"}"#,
    // It begins in October, and is October's whole.
    r#"u-2 usage.reported 2026-11-01T12:00:00Z {"tenant":"acme","project":"vision","sku":"storage-gib","quantity":"12500","unit":"gib","start":"2026-10-31T12:00:00Z","end":"2026-11-01T12:00:00Z"}"#,
    r#"u-3 usage.reported 2026-10-06T00:00:00Z {"tenant":"acme","sku":"egress","quantity":"7","unit":"gib","start":"2026-10-05T00:00:00Z","end":"2026-10-06T00:00:00Z"}"#,
    r#"c-1 charge.recorded 2026-11-01T08:00:00Z {"tenant":"acme","description":"Support, October","amount":"100.00","currency":"USD","period":"2026-10"}"#,
    r#"c-2 charge.recorded 2026-10-07T00:00:00Z {"tenant":"acme","description":"Goodwill","amount":"-10.00","currency":"USD"}"#,
    r#"c-3 charge.recorded 2026-10-07T00:00:00Z {"tenant":"acme","description":"Import","amount":"5.00","currency":"EUR"}"#,
];

#[tokio::test]
async fn v13_reported_usage_and_charges_are_lines_of_their_own_outside_the_gpu_balance() -> Result<()> {
    let books = Database::new(CARD).await?;
    books.say(&FACTS, "2026-11-02T00:00:00Z").await?;
    let report = books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    // (2.50 + 100.00 - 10.00) * 1.19
    assert_eq!(told(&report)[0], "acme 110.08 new");
    assert!(
        report.not_billed[0].contains("c-3 of 5 EUR is not billed, expected an amount in USD"),
        "{report:?}"
    );
    let document = show(&books.db, Which::Period { tenant: "acme", period: "2026-10" }).await?;
    let lines: Vec<String> = document
        .lines
        .iter()
        .map(|l| {
            format!(
                "{} {} {} {} {} per {} = {}",
                l.kind, l.description, l.quantity, l.unit, l.unit_price, l.per, l.amount
            )
        })
        .collect();
    let expected = [
        "meter storage-gib 25000 gib 0.0001 per unit = 2.50",
        "charge Support, October 1 charge 100.00 per unit = 100.00",
        "charge Goodwill 1 charge -10.00 per unit = -10.00",
    ];
    assert_eq!(lines, expected);
    assert_eq!((document.unpriced[0].sku.as_str(), document.unpriced[0].quantity.as_str()), ("egress", "7"));
    assert_eq!(document.not_billed[0].id, "c-3");
    let taxes: Vec<&str> = document.lines.iter().map(|line| line.taxes[0].amount.as_str()).collect();
    assert_eq!(taxes, ["0.48", "19.00", "-1.90"], "parts of both signs add up to the tax");
    let why = explain(&books.db, "inv-2026-10-acme-1.1").await?.text();
    assert!(
        why.contains("2 parts add up to 25000 gib") && why.contains("25000 gib × 0.0001 USD = 2.5"),
        "{why}"
    );
    assert!(why.contains("/allocators/t u-1") && why.contains("/allocators/t u-2"), "{why}");
    let why = explain(&books.db, "inv-2026-10-acme-1.3").await?.text();
    assert!(why.contains("recorded as -10.00 USD") && why.contains("c-2"), "{why}");
    let page = render::html(&document)?;
    assert!(page.contains("Goodwill") && page.contains("25\u{202f}000 gib"), "{page}");
    assert!(render::csv(&document)?.contains("charge,,,Goodwill,"));
    let table = render::table(&document);
    assert!(
        table.contains("no price: 7 gib of egress") && table.contains("not billed: Import, 5 EUR"),
        "{table}"
    );
    let mut tx = books.db.snapshot().await?;
    let as_of = at("2026-11-02T00:00:00Z")?;
    let (ledger, catalogue) = (Books::load(&mut tx).await?, Catalogue::load(&mut tx).await?);
    assert_eq!(ledger.attribute(as_of).spans, vec![], "no GPU time");
    let sold = SoldBook::load(&mut tx, as_of).await?;
    let findings = unpriced_findings(&catalogue, &sold, ledger.attribute(as_of), as_of)?;
    assert_eq!(findings.iter().map(|f| f.subject.as_str()).collect::<Vec<_>>(), ["acme"]);
    drop(tx);
    books.drop().await
}

#[tokio::test]
async fn v13_late_reports_and_charges_are_adjustments_and_nothing_is_billed_twice() -> Result<()> {
    let books = Database::new(CARD).await?;
    books.say(&FACTS[..1], "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", Some("acme"), "2026-11-02T00:00:00Z").await?;
    // I-1: what was said before is said again.
    let late = [
        FACTS[0],
        FACTS[1],
        FACTS[3],
        r#"x-1 usage.reported 2026-11-03T00:00:00Z {"tenant":"stranger","sku":"storage-gib","quantity":"1","unit":"gib","start":"2026-11-02T00:00:00Z","end":"2026-11-03T00:00:00Z"}"#,
    ];
    books.say(&late, "2026-12-02T00:00:00Z").await?;
    let report = books.close("2026-11", None, "2026-12-02T00:00:00Z").await?;
    assert!(
        told(&report).iter().any(|line| line.starts_with("stranger: tenant stranger is unknown")),
        "{report:?}"
    );
    let document = show(&books.db, Which::Period { tenant: "acme", period: "2026-11" }).await?;
    let lines: Vec<String> = document
        .lines
        .iter()
        .map(|l| {
            let corrects = l.corrects.as_ref().unwrap();
            format!("{} {} {} {} {:?}", l.kind, corrects.kind, l.quantity, l.amount, corrects.line)
        })
        .collect();
    let expected =
        ["adjustment meter 12500 1.25 Some(\"inv-2026-10-acme-1.1\")", "adjustment charge 1 100.00 None"];
    assert_eq!(lines, expected);
    books.replay(&[], "2027-01-02T00:00:00Z").await?;
    assert_eq!(told(&books.close("2026-12", Some("acme"), "2027-01-02T00:00:00Z").await?), ["acme none new"]);
    books.drop().await
}

#[tokio::test]
async fn v2_the_first_period_is_that_of_the_first_fact_or_fee_where_books_have_no_opening() -> Result<()> {
    let never_opened = "{kind: Seller, id: gpu-cloud, name: GPU Cloud GmbH, country: DE, time_zone: UTC}";
    let books = Database::new(CARD).await?;
    books.apply(never_opened).await?;
    books.say(&[FACTS[4], r#"c-0 charge.recorded 2026-10-07T00:00:00Z {"tenant":"acme","description":"Set-up","amount":"1.00","currency":"USD","period":"2026-09"}"#], "2026-12-02T00:00:00Z").await?;
    let close = |period: &'static str| books.close(period, Some("acme"), "2026-12-02T00:00:00Z");
    assert!(told(&close("2026-10").await?)[0].contains("period 2026-09 comes before 2026-10"));
    assert_eq!(told(&close("2026-09").await?), ["acme 1.19 new"]);
    assert_eq!(told(&close("2026-10").await?), ["acme -11.90 new"]);
    // With an opening of the books, a charge for a period before it is named and never billed.
    let opened = Database::new(CARD).await?;
    opened.say(&[r#"c-0 charge.recorded 2026-10-07T00:00:00Z {"tenant":"acme","description":"Set-up","amount":"1.00","currency":"USD","period":"2026-09"}"#], "2026-12-02T00:00:00Z").await?;
    let report = opened.close("2026-10", Some("acme"), "2026-12-02T00:00:00Z").await?;
    assert_eq!(told(&report), ["acme none new"]);
    assert!(report.not_billed[0].contains("is for 2026-09 and not billed"), "{report:?}");
    opened.drop().await?;
    books.drop().await
}
