//! Facts that come after their period was closed (A-6): adjustments, what they name, and what is carried (V-11).

use crate::books::{Database, at};
use crate::closing::told;
use anyhow::Result;
use gpuledger_billing::document::Document;
use gpuledger_billing::{BillingError, Issue, Which, discard, explain, issue, render, show};

type Use = (&'static str, &'static str, &'static str, &'static str, &'static str);

const TEN_HOURS: Use = ("a-1", "acme", "l40s", "2026-10-01T00:00:00Z", "2026-10-01T10:00:00Z");
const ONE_HOUR_LATE: Use = ("a-2", "acme", "l40s", "2026-10-03T00:00:00Z", "2026-10-03T01:00:00Z");

async fn of_period(books: &Database, period: &str) -> Result<Document> {
    Ok(show(&books.db, Which::Period { tenant: "acme", period }).await?)
}

/// `kind sku quantity amount corrects`.
fn lines(document: &Document) -> Vec<String> {
    let one = |line: &gpuledger_billing::document::LineView| {
        let corrects = line.corrects.as_ref().map_or_else(String::new, |corrects| {
            format!(" {} {}", corrects.period, corrects.line.as_deref().unwrap_or("none"))
        });
        format!(
            "{} {} {} {}{corrects}",
            line.kind,
            line.sku.as_deref().unwrap_or("-"),
            line.quantity,
            line.amount
        )
    };
    document.lines.iter().map(one).collect()
}

#[tokio::test]
async fn a6_late_usage_is_an_adjustment_in_the_next_open_period_and_the_same_bytes_a_year_later() -> Result<()>
{
    let books = Database::new("").await?;
    books.replay(&[TEN_HOURS], "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    issue(&books.db, Issue::All { period: None }, at("2026-11-02T00:00:00Z")?).await?;
    let october = render::json(&of_period(&books, "2026-10").await?)?;
    let november = ("a-9", "acme", "l40s", "2026-11-03T00:00:00Z", "2026-11-03T02:00:00Z");
    let other_sku = ("a-3", "acme", "l4", "2026-10-04T00:00:00Z", "2026-10-04T01:00:00Z");
    books.replay(&[ONE_HOUR_LATE, other_sku, november], "2026-12-01T00:00:00Z").await?;
    let report = books.close("2026-11", None, "2026-12-01T00:00:00Z").await?;
    assert_eq!(told(&report)[0], "acme 8.57 new");
    let late: Vec<String> = report.late.iter().map(ToString::to_string).collect();
    assert_eq!(
        late,
        ["acme: facts came late for 2026-10: 2 lines, 2.40 USD, adjusted in inv-2026-11-acme-1"]
    );
    let document = of_period(&books, "2026-11").await?;
    // A price of 0 is a price (V-11), and its quantity is on a document too; it corrects a line that nobody has.
    let expected = [
        "usage l40s 7200 4.80",
        "adjustment l4 3600 0.00 2026-10 none",
        "adjustment l40s 3600 2.40 2026-10 inv-2026-10-acme-1.1",
    ];
    assert_eq!(lines(&document), expected);
    assert_eq!((document.subtotal.as_str(), document.taxes[0].amount.as_str()), ("7.20", "1.37"));
    let corrects = document.lines[2].corrects.as_ref().unwrap();
    assert_eq!((corrects.now.amount.as_str(), corrects.stood.amount.as_str()), ("26.40", "24.00"));
    let details: Vec<_> =
        document.lines[2].details.iter().filter_map(|part| part.allocation.as_deref()).collect();
    assert_eq!(details, ["a-2"], "the part that changed");
    let bytes = render::json(&document)?;
    let again = books.close("2026-11", None, "2027-12-01T00:00:00Z").await?;
    assert_eq!(
        (told(&again)[0].as_str(), again.late.len()),
        ("acme 8.57 stands", 0),
        "what is adjusted stands"
    );
    assert_eq!(render::json(&of_period(&books, "2026-11").await?)?, bytes);
    assert_eq!(
        render::json(&of_period(&books, "2026-10").await?)?,
        october,
        "an issued document never changes"
    );
    let why = explain(&books.db, "inv-2026-11-acme-1.3").await?.text();
    for part in [
        "inv-2026-10-acme-1.1, usage of 2026-10",
        "from all facts it is 39600 s now: × 2.40 USD per hour = 26.4, rounded 26.40",
        "on documents stood 36000 s: 24.00 USD",
        "26.40 − 24.00 = 2.40 USD",
        "a-2-g",
    ] {
        assert!(why.contains(part), "{part}\n{why}");
    }
    let page = render::html(&document)?;
    assert!(page.contains("adjustment of 2026-10, inv-2026-10-acme-1.1"), "{page}");
    assert!(render::csv(&document)?.contains(",2026-10,inv-2026-10-acme-1.1"));
    books.drop().await
}

#[tokio::test]
async fn v11_a_negative_total_is_signed_nothing_is_due_and_it_is_carried() -> Result<()> {
    let books = Database::new("").await?;
    let open = r#"a-1-g allocation.granted 2026-10-01T00:00:00Z {"allocation":"a-1","tenant":"acme","units":[{"sku":"l40s","count":1}],"mode":"exclusive","class":"on_demand"}"#;
    let release = r#"a-1-r allocation.released 2026-10-01T20:00:00Z {"allocation":"a-1"}"#;
    books.say(&[open, release], "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    // It had ended ten hours earlier: 24.00 net too much.
    let sooner = r#"a-1-r2 allocation.released 2026-10-01T10:00:00Z {"allocation":"a-1"}"#;
    books.say(&[sooner], "2026-12-01T00:00:00Z").await?;
    books.close("2026-11", None, "2026-12-01T00:00:00Z").await?;
    let november = of_period(&books, "2026-11").await?;
    assert_eq!(lines(&november), ["adjustment l40s -36000 -24.00 2026-10 inv-2026-10-acme-1.1"]);
    let carried =
        |d: &Document| (d.total.clone(), d.carried_in.clone(), d.carried_out.clone(), d.amount_due.clone());
    let texts = |a: &str, b: &str, c: &str, d: &str| (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned());
    assert_eq!(carried(&november), texts("-28.56", "0.00", "28.56", "0.00"));
    // Nothing in December; January uses it up.
    let now = at("2027-01-02T00:00:00Z")?;
    let refused = discard(&books.db, Which::Id("inv-2026-10-acme-1"), now).await.unwrap_err();
    assert!(
        matches!(&refused, BillingError::BuiltOn { later, .. } if later == "inv-2026-11-acme-1"),
        "{refused}"
    );
    let january = ("j-1", "acme", "l40s", "2027-01-05T00:00:00Z", "2027-01-05T20:00:00Z");
    books.replay(&[january], "2027-02-01T00:00:00Z").await?;
    let december = books.close("2026-12", Some("acme"), "2027-02-01T00:00:00Z").await?;
    assert_eq!(told(&december), ["acme none new"], "no line, no invoice");
    books.close("2027-01", Some("acme"), "2027-02-01T00:00:00Z").await?;
    let january = of_period(&books, "2027-01").await?;
    assert_eq!(carried(&january), texts("57.12", "28.56", "0.00", "28.56"));
    books.drop().await
}

#[tokio::test]
async fn v12_prices_applied_after_a_close_change_nothing_closed_but_give_a_price_to_what_has_none()
-> Result<()> {
    let books = Database::new("").await?;
    books.replay(&[TEN_HOURS], "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    let b200 = ("b-1", "acme", "b200", "2026-10-04T00:00:00Z", "2026-10-04T01:00:00Z");
    books.replay(&[b200], "2026-12-01T00:00:00Z").await?;
    let dearer = r#"
        kind: RateCard
        id: standard
        currency: USD
        effective_from: "2026-01-01T00:00:00Z"
        tenants: ["*"]
        prices: [{sku: l40s, per: hour, price: "9.00"}, {sku: b200, per: hour, price: "5.00"}]"#;
    let first = books.close("2026-11", Some("acme"), "2026-12-01T00:00:00Z").await?;
    let draft = first.closed[0].document.as_ref().unwrap();
    assert_eq!((lines(draft), draft.unpriced[0].period.as_deref()), (vec![], Some("2026-10")), "{draft:?}");
    let now = at("2026-12-01T00:00:00Z")?;
    assert_eq!(issue(&books.db, Issue::One(Which::Id(&draft.id)), now).await?.refused.len(), 1);
    discard(&books.db, Which::Id(&draft.id), now).await?;
    books.apply(dearer).await?;
    books.close("2026-11", Some("acme"), "2026-12-01T00:00:00Z").await?;
    let again = of_period(&books, "2026-11").await?;
    assert_eq!(
        lines(&again),
        ["adjustment b200 3600 5.00 2026-10 none"],
        "l40s stays at the price of its close"
    );
    assert_eq!(again.unpriced, vec![]);
    books.drop().await
}

#[tokio::test]
async fn a6_names_of_products_applied_after_a_close_do_not_move_what_is_closed() -> Result<()> {
    let books = Database::new("{kind: RateCard, id: names, currency: USD, effective_from: \"2026-01-01T00:00:00Z\", tenants: [\"*\"], prices: [{sku: big, per: hour, price: \"7.00\"}]}").await?;
    let grant = |sku: &str| {
        format!(
            r#"a-1-g allocation.granted 2026-10-01T00:00:00Z {{"allocation":"a-1","tenant":"acme","units":[{{"sku":"{sku}","count":1}}],"mode":"exclusive","class":"on_demand"}}"#
        )
    };
    let release = r#"a-1-r allocation.released 2026-10-01T10:00:00Z {"allocation":"a-1"}"#;
    books.say(&[&grant("l40s"), release], "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", Some("acme"), "2026-11-02T00:00:00Z").await?;
    books.apply("{kind: Sku, id: big, match: [{label: l40s}]}").await?;
    books.replay(&[], "2026-12-01T00:00:00Z").await?;
    let report = books.close("2026-11", Some("acme"), "2026-12-01T00:00:00Z").await?;
    assert_eq!((told(&report), report.late.len()), (vec!["acme none new".to_owned()], 0));
    books.drop().await
}

/// The next number of a fixed sequence.
fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

#[tokio::test]
async fn a6_documents_add_up_to_one_bill_of_everything_whatever_came_late() -> Result<()> {
    let (late, at_once) = (Database::new("").await?, Database::new("").await?);
    let mut state = 3;
    let mut all: Vec<String> = Vec::new();
    let closes = ["2026-11-02", "2026-12-02", "2027-01-02"];
    for (month, close) in ["2026-10", "2026-11", "2026-12"].into_iter().zip(closes) {
        let mut facts = Vec::new();
        for _ in 0..12 {
            let (number, sku) =
                (all.len() + facts.len(), ["l40s", "l4"][usize::from(draw(&mut state, 2) == 0)]);
            // From 1 October on, whenever it is said: about a third of the later ones come too late for their month.
            let start =
                at("2026-10-01T00:00:00Z")?.plus(i64::try_from(draw(&mut state, 90 * 86_400))? * 1_000_001);
            let end = start.plus(i64::try_from(draw(&mut state, 300_000) + 1)? * 999_983);
            if end > at(&format!("{close}T00:00:00Z"))? {
                continue;
            }
            facts.push(format!(r#"g-{number} allocation.granted {start} {{"allocation":"a-{number}","tenant":"acme","units":[{{"sku":"{sku}","count":2,"share":"1/3"}}],"mode":"shared","class":"on_demand"}}"#));
            facts.push(format!(r#"r-{number} allocation.released {end} {{"allocation":"a-{number}"}}"#));
        }
        late.say(&facts.iter().map(String::as_str).collect::<Vec<_>>(), &format!("{close}T00:00:00Z"))
            .await?;
        let report = late.close(month, Some("acme"), &format!("{close}T00:00:00Z")).await?;
        assert!(report.is_complete(), "{report:?}");
        all.extend(facts);
    }
    let facts: Vec<&str> = all.iter().map(String::as_str).collect();
    at_once.say(&facts, "2027-01-02T00:00:00Z").await?;
    for month in ["2026-10", "2026-11", "2026-12"] {
        at_once.close(month, Some("acme"), "2027-01-02T00:00:00Z").await?;
    }
    let sums = |documents: Vec<Document>| {
        let mut sums: std::collections::BTreeMap<(String, String), (i128, i128)> = Default::default();
        for document in &documents {
            for line in &document.lines {
                let period = line.corrects.as_ref().map_or(&document.period, |corrects| &corrects.period);
                let number = |text: &str| {
                    let quantity: gpuledger_domain::rating::Quantity = text.parse().unwrap();
                    quantity.micros()
                };
                let key = (period.clone(), line.sku.clone().unwrap_or_default());
                let sum = sums.entry(key).or_default();
                *sum = (sum.0 + number(&line.quantity), sum.1 + number(&line.amount));
            }
        }
        sums
    };
    let documents = gpuledger_billing::list(&late.db, None, None).await?;
    let adjustments =
        documents.iter().flat_map(|d| &d.lines).filter(|line| line.kind == "adjustment").count();
    assert!(adjustments > 0, "something came late");
    assert_eq!(sums(documents), sums(gpuledger_billing::list(&at_once.db, None, None).await?));
    at_once.drop().await?;
    late.drop().await
}
