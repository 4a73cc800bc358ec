//! Gaps of telemetry: sequences that never came, and times in which a node says that it could not read.

use crate::error::BooksError;
use gpuledger_domain::finding::{Finding, Kind};
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::telemetry::{SequenceGap, gaps};
use gpuledger_storage::unread::{self, Unread};

/// Findings of all nodes, up to `as_of`.
pub(super) async fn of_telemetry(
    connection: &mut PgConnection,
    as_of: Instant,
) -> Result<Vec<Finding>, BooksError> {
    let missing = gaps(connection).await?;
    let said = unread::load(connection, as_of.as_micros()).await?;
    let missing = missing.iter().filter_map(|gap| of_sequences(gap, as_of));
    Ok(missing.chain(said.iter().map(of_node)).collect())
}

/// A hole reaches from the end of the window before it to the start of the one behind it. It does not act before it was seen, which is
/// when the window behind it ends.
fn of_sequences(gap: &SequenceGap, as_of: Instant) -> Option<Finding> {
    let since = gap.since_us.map_or(as_of, Instant::from_micros);
    let until = gap.until_us.map(Instant::from_micros);
    (since <= as_of && until.is_none_or(|until| until <= as_of)).then(|| Finding {
        kind: Kind::Gap,
        subject: gap.node.clone(),
        since,
        until,
        detail: format!(
            "node {}: windows {} to {} of stream {} never came",
            gap.node, gap.first, gap.last, gap.stream
        ),
    })
}

fn of_node(unread: &Unread) -> Finding {
    Finding {
        kind: Kind::Gap,
        subject: unread.node.clone(),
        since: Instant::from_micros(unread.start_us),
        until: Some(Instant::from_micros(unread.end_us)),
        detail: format!("node {} could not measure: {}", unread.node, unread.reason),
    }
}
