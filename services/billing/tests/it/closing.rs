//! Preconditions of a close, and that closing again gives what stands (V-2, V-3).

use crate::books::Database;
use anyhow::Result;
use gpuledger_billing::{CloseReport, Which, close_period, discard, list, render, show};

const TEN_HOURS: (&str, &str, &str, &str, &str) =
    ("a-1", "acme", "l40s", "2026-10-01T00:00:00Z", "2026-10-01T10:00:00Z");

/// `tenant total-or-none new|stands`, then `tenant: reason` of the refused.
pub(crate) fn told(report: &CloseReport) -> Vec<String> {
    let closed = report.closed.iter().map(|c| {
        let total = c.document.as_ref().map_or("none", |d| &d.total);
        format!("{} {total} {}", c.tenant, if c.is_new { "new" } else { "stands" })
    });
    closed.chain(report.refused.iter().map(|r| format!("{}: {}", r.tenant, r.reason))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn v2_closing_twice_or_at_once_gives_one_draft_with_the_same_bytes() -> Result<()> {
    let books = Database::new("").await?;
    books.replay(&[TEN_HOURS], "2026-11-01T00:00:00Z").await?;
    let early = books.close("2026-10", None, "2026-10-31T23:59:59.999999Z").await?;
    assert!(
        told(&early).iter().all(|line| line.contains("is not over before 2026-11-01T00:00:00Z")),
        "{early:?}"
    );
    assert_eq!(
        told(&books.close("2026-10", None, "2026-11-01T00:00:59.999999Z").await?),
        ["acme 28.56 new", "beta none new"]
    );
    let which = Which::Period { tenant: "acme", period: "2026-10" };
    let bytes = render::json(&show(&books.db, which).await?)?;
    let (one, two) = tokio::join!(
        books.close("2026-10", None, "2026-11-01T00:02:00Z"),
        books.close("2026-10", Some("acme"), "2026-11-01T00:02:00Z")
    );
    assert_eq!(told(&one?), ["acme 28.56 stands", "beta none stands"]);
    assert_eq!(told(&two?), ["acme 28.56 stands"]);
    books.close("2026-10", None, "2027-11-01T00:00:00Z").await?;
    assert_eq!(render::json(&show(&books.db, which).await?)?, bytes);
    assert_eq!(list(&books.db, None, Some("2026-10")).await?.len(), 1);
    books.drop().await
}

#[tokio::test]
async fn v2_what_cannot_be_closed_is_named_and_the_others_close() -> Result<()> {
    let books = Database::new("").await?;
    let unknown = ("x-1", "stranger", "l40s", "2026-10-02T00:00:00Z", "2026-10-02T01:00:00Z");
    books.replay(&[TEN_HOURS, unknown], "2026-10-31T00:00:00Z").await?;
    let behind = books.close("2026-10", Some("acme"), "2026-11-02T00:00:00Z").await?;
    assert!(told(&behind)[0].contains("has come to 2026-10-31T00:00:00Z only"), "{behind:?}");
    books.replay(&[], "2026-12-02T00:00:00Z").await?;
    let later = books.close("2026-11", Some("acme"), "2026-12-02T00:00:00Z").await?;
    assert!(told(&later)[0].contains("period 2026-10 comes before 2026-11"), "{later:?}");
    let report = books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    assert!(!report.is_complete());
    assert_eq!(told(&report)[..2], ["acme 28.56 new", "beta none new"]);
    assert!(told(&report)[2].starts_with("stranger: tenant stranger is unknown"), "{report:?}");
    let next = books.close("2026-11", None, "2026-12-02T00:00:00Z").await?;
    assert_eq!(told(&next), ["acme none new", "beta none new"], "the stranger used nothing in November");
    books.drop().await
}

#[tokio::test]
async fn v1_a_discarded_draft_reopens_its_period_and_the_next_freezes_what_is_known_then() -> Result<()> {
    let books = Database::new("").await?;
    books.replay(&[TEN_HOURS], "2026-11-02T00:00:00Z").await?;
    let dry =
        close_period(&books.db, "2026-10".parse()?, None, crate::books::at("2026-11-02T00:00:00Z")?, true)
            .await?;
    assert_eq!(told(&dry)[0], "acme 28.56 new");
    assert_eq!(list(&books.db, None, None).await?, vec![], "a dry run writes nothing");
    let first = books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    let late = ("a-2", "acme", "l40s", "2026-10-03T00:00:00Z", "2026-10-03T01:00:00Z");
    books.replay(&[late], "2026-11-03T00:00:00Z").await?;
    let stands = books.close("2026-10", None, "2026-11-03T00:00:00Z").await?;
    assert_eq!(told(&stands)[0], "acme 28.56 stands");
    let late: Vec<String> = stands.late.iter().map(ToString::to_string).collect();
    let named =
        "acme: facts came late for 2026-10: 1 line, 2.40 USD, to be adjusted when the next period is closed";
    assert_eq!(late, [named], "what came late is named");
    let now = crate::books::at("2026-11-03T00:00:00Z")?;
    let id = first.closed[0].document.as_ref().unwrap().id.clone();
    assert_eq!(discard(&books.db, Which::Id(&id), now).await?.status, "discarded");
    assert!(discard(&books.db, Which::Id(&id), now).await.is_err());
    let again = books.close("2026-10", None, "2026-11-03T00:00:00Z").await?;
    assert_eq!(told(&again), ["acme 31.42 new", "beta none stands"]);
    assert_eq!(books.close("2026-10", None, "2026-11-03T00:00:00Z").await?.late, vec![]);
    let (old, new) = (first.closed[0].document.as_ref().unwrap(), again.closed[0].document.as_ref().unwrap());
    assert_eq!((old.facts.count.as_str(), new.facts.count.as_str()), ("2", "4"));
    assert_ne!(old.facts.digest, new.facts.digest);
    assert_ne!(old.id, new.id);
    books.drop().await
}

#[tokio::test]
async fn terms_that_cannot_be_rated_leave_the_period_open() -> Result<()> {
    let books = Database::new(
        "{kind: Commitment, id: c-day, tenant: beta, sku: l40s, quantity: 2, from: \"2026-10-01T00:00:00Z\", \
          to: \"2026-10-02T00:00:00Z\", price: \"1.60\"}",
    )
    .await?;
    books.replay(&[TEN_HOURS], "2026-11-02T00:00:00Z").await?;
    let report = books.close("2026-10", None, "2026-11-02T00:00:00Z").await?;
    assert_eq!(told(&report)[0], "acme 28.56 new");
    assert!(told(&report)[1].starts_with("beta: commitment c-day"), "{report:?}");
    books.drop().await
}
