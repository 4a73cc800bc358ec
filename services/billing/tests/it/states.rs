//! Billing states from facts to lines (V-4): pulling, loading, ready, idle, held, and notice before a preemption.

use crate::books::Database;
use anyhow::Result;
use gpuledger_billing::{Which, show};

const CARD: &str = r#"{kind: RateCard, id: serving, currency: USD, effective_from: "2026-01-01T00:00:00Z", tenants: ["acme"], prices: [{sku: server, per: hour, price: "3.60", minimum: 60s, billed_states: [loading, ready, idle]}]}"#;

fn grant(allocation: &str, class: &str, time: &str) -> String {
    format!(
        r#"{allocation}-g allocation.granted {time} {{"allocation":"{allocation}","tenant":"acme","units":[{{"sku":"server","count":1}}],"mode":"exclusive","class":"{class}"}}"#
    )
}

fn state(allocation: &str, state: &str, time: &str) -> String {
    format!(
        r#"{allocation}-{state}-{time} allocation.state {time} {{"allocation":"{allocation}","state":"{state}"}}"#
    )
}

#[tokio::test]
async fn v4_only_time_in_billed_states_is_charged_and_each_state_is_a_line() -> Result<()> {
    let books = Database::new(CARD).await?;
    let day = |time: &str| format!("2026-10-05T{time}Z");
    let facts = [
        grant("a-1", "on_demand", &day("00:00:00")),
        state("a-1", "pulling", &day("00:00:00")),
        state("a-1", "loading", &day("00:10:00")),
        state("a-1", "ready", &day("00:20:00")),
        state("a-1", "idle", &day("01:00:00")),
        state("a-1", "held", &day("02:00:00")),
        format!(r#"a-1-r allocation.released {} {{"allocation":"a-1"}}"#, day("03:00:00")),
        // Taken back 30 seconds after it was ready, 10 of them under notice: the minimum adds nothing.
        grant("s-1", "spot", &day("04:00:00")),
        state("s-1", "ready", &day("04:00:00")),
        state("s-1", "notice", &day("04:00:20")),
        format!(
            r#"s-1-r allocation.released {} {{"allocation":"s-1","reason":"preempted"}}"#,
            day("04:00:30")
        ),
    ];
    books.say(&facts.iter().map(String::as_str).collect::<Vec<_>>(), "2026-11-02T00:00:00Z").await?;
    books.close("2026-10", Some("acme"), "2026-11-02T00:00:00Z").await?;
    let document = show(&books.db, Which::Period { tenant: "acme", period: "2026-10" }).await?;
    let lines: Vec<String> = document
        .lines
        .iter()
        .map(|l| {
            format!(
                "{} {} {} {}",
                l.class.as_deref().unwrap(),
                l.state.as_deref().unwrap_or("-"),
                l.quantity,
                l.amount
            )
        })
        .collect();
    let expected = [
        "on_demand idle 3600 3.60",
        "on_demand loading 600 0.60",
        "on_demand ready 2400 2.40",
        "spot ready 20 0.02",
    ];
    assert_eq!(lines, expected);
    books.drop().await
}
