//! The outbox of signals: raised once for a cause, withdrawn only before a try, answered by the latest.

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::signals::{
    NewSignal, all, answer, due, lift, published, quarantines, raise, tried, withdraw,
};

fn quarantine(number: u32, due_at_us: i64) -> NewSignal {
    NewSignal {
        signal: format!("s-{number}"),
        cause: format!("cause {number}"),
        tenant: "acme".to_owned(),
        action: "quarantine".to_owned(),
        gpu: Some("GPU-1".to_owned()),
        slices: Some("0-3".to_owned()),
        since_us: 5,
        event: b"{}".to_vec(),
        raised_at_us: 10,
        due_at_us,
    }
}

#[tokio::test]
async fn a_cause_raises_its_signal_once_and_again_only_after_it_was_withdrawn() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let signals = [quarantine(1, 20), quarantine(2, 20)];
    assert_eq!(raise(&mut tx, &signals).await?.len(), 2);
    assert_eq!(raise(&mut tx, &signals).await?, [""; 0], "found again");
    assert_eq!(withdraw(&mut tx, &["s-1".to_owned()], 11).await?, ["s-1"]);
    assert_eq!(due(&mut tx, 20, 10).await?.len(), 1);
    assert_eq!(raise(&mut tx, &signals).await?, ["s-1"], "its cause came back");
    tried(&mut tx, &["s-2".to_owned()]).await?;
    assert_eq!(withdraw(&mut tx, &["s-2".to_owned()], 12).await?, [""; 0], "it may have left");
    tx.rollback().await?;
    database.drop().await
}

#[tokio::test]
async fn a_signal_is_due_until_it_is_published_and_stands_until_it_is_lifted() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    raise(&mut tx, &[quarantine(1, 20)]).await?;
    assert!(due(&mut tx, 19, 10).await?.is_empty());
    assert_eq!(due(&mut tx, 20, 10).await?.len(), 1);
    published(&mut tx, "s-1", 21).await?;
    assert!(due(&mut tx, 30, 10).await?.is_empty());
    let gpu = ["GPU-1".to_owned()];
    assert_eq!(quarantines(&mut tx, &gpu).await?.len(), 1);
    lift(&mut tx, &["s-1".to_owned()], 40).await?;
    assert!(quarantines(&mut tx, &gpu).await?.is_empty());
    tx.rollback().await?;
    database.drop().await
}

#[tokio::test]
async fn the_latest_answer_by_its_own_time_stands() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    raise(&mut tx, &[quarantine(1, 20)]).await?;
    assert!(answer(&mut tx, "s-1", "effected", 50).await?);
    assert!(answer(&mut tx, "s-1", "accepted", 40).await?, "it comes late");
    assert!(!answer(&mut tx, "s-9", "accepted", 40).await?);
    let row = all(&mut tx).await?.remove(0);
    assert_eq!((row.outcome.as_deref(), row.answered_at_us), (Some("effected"), Some(50)));
    tx.rollback().await?;
    database.drop().await
}
