//! Usage says what was measured, of each tenant's own units, equal to what the whole ledger says.

use crate::fixture::{Fixture, START, WINDOW, claims, span, tenant};
use anyhow::Result;
use gpuledger_api::token::Role;
use gpuledger_domain::time::HOUR_US;
use gpuledger_storage::hours::{HourKey, PackedHour, Used, replace_nodes};
use gpuledger_storage::spans::{SpanRow, replace_spans};
use serde_json::Value;

fn used(sm: u64) -> Used {
    let mut used = Used::default();
    for minute in 0..60 {
        used.covered_us.add(minute, 60_000_000);
        used.sm_active_us.add(minute, sm);
    }
    used.quality.add("sm_active_us", "interval_mean", 3_600_000_000, 0);
    used
}

/// Both tenants held the same GPU in the first hour: acme up to the middle of a minute as job 5, umbra from then on without a name.
async fn with_readings() -> Result<Fixture> {
    let fixture = Fixture::new().await?;
    let edge = START.plus(HOUR_US / 2 + 20_000_000);
    let held = |tenant: &str, from: i64, to: i64| SpanRow {
        gpu: Some("GPU-1".to_owned()),
        node: Some("n1".to_owned()),
        start_us: from,
        end_us: to,
        compute_slices: Some(7),
        memory_slices: Some(8),
        gpu_compute_slices: Some(7),
        gpu_memory_slices: Some(8),
        memory_start: Some(0),
        slurm_job: (tenant == "acme").then(|| "5".to_owned()),
        ..span(tenant, &format!("{tenant}-measured"), 1)
    };
    let spans = [
        held("acme", START.as_micros(), edge.as_micros()),
        held("umbra", edge.as_micros(), START.plus(HOUR_US).as_micros()),
    ];
    let key = |owner: &str| HourKey {
        hour_us: START.as_micros(),
        node: "n1".to_owned(),
        gpu: "GPU-1".to_owned(),
        placement: None,
        owner: owner.to_owned(),
    };
    let mut job = Used::default();
    for minute in 0..=30 {
        job.covered_us.add(minute, 60_000_000);
        job.sm_active_us.add(minute, 10_000_000);
    }
    job.quality.add("sm_active_us", "driver_counter", 60_000_000, 0);
    let rows = [PackedHour { key: key("job:5"), used: Some(job), unit: Some(used(30_000_000)) }];
    let mut tx = fixture.writer.begin().await?;
    replace_spans(&mut tx, &[], &["GPU-1".to_owned()], &spans).await?;
    replace_nodes(&mut tx, START.as_micros(), &["n1"], &rows, false).await?;
    tx.commit().await?;
    Ok(fixture)
}

fn measured<'r>(report: &'r Value, allocation: &str) -> &'r Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["allocation"] == allocation).unwrap()
}

#[tokio::test]
async fn each_tenants_figure_is_the_one_that_those_who_see_all_see_a_13() -> Result<()> {
    let fixture = with_readings().await?;
    let path = format!("/v1/usage?{WINDOW}&group_by=allocation");
    let all = fixture.get_as(&claims(Role::Platform), &path).await?.json();
    let acme = measured(&all, "acme-measured");
    // Job 5 tells 10 s of each of its 31 minutes, all of the last one included.
    assert_eq!(
        (acme["sm_active_us"].as_str(), acme["quality"].as_str()),
        (Some("310000000"), Some("driver_counter"))
    );
    // The unit's 30 s of each minute, of the first one 40 of 60 seconds.
    let umbra = measured(&all, "umbra-measured");
    assert_eq!(
        (umbra["sm_active_us"].as_str(), umbra["quality"].as_str()),
        (Some("890000000"), Some("interval_mean"))
    );
    assert_eq!(umbra["covered_us"], "1780000000");
    assert_eq!(measured(&all, "acme-1")["sm_active_us"], Value::Null);
    for name in ["acme", "umbra"] {
        let own = fixture.get_as(&tenant(name), &path).await?.json();
        let allocation = format!("{name}-measured");
        assert_eq!(measured(&own, &allocation), measured(&all, &allocation));
    }
    fixture.end().await
}

#[tokio::test]
async fn by_the_weight_sm_what_was_not_measured_has_no_gpu_time() -> Result<()> {
    let fixture = with_readings().await?;
    let path = format!("/v1/usage?{WINDOW}&group_by=allocation&weight=sm");
    let own = fixture.get_as(&tenant("umbra"), &path).await?.json();
    assert_eq!(measured(&own, "umbra-measured")["gpu_seconds"], "890");
    assert_eq!(measured(&own, "umbra-1")["gpu_seconds"], Value::Null);
    fixture.end().await
}
