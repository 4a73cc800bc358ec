//! What would make a parked event right, in words.

use crate::decide::SKEW_BOUND_US;
use gpuledger_domain::time::Instant;
use gpuledger_storage::parked::ParkedRow;

/// What can be done about a parked event that is open. `stands`: whether the same content was accepted meanwhile.
pub(super) fn remedies(row: &ParkedRow, stands: bool) -> Vec<String> {
    let number = row.seq;
    if stands {
        return vec![format!(
            "The same event was accepted since, so nothing is missing: `parked discard {number} --reason …`."
        )];
    }
    let discard = format!("If it is not to count: `parked discard {number} --reason …`.");
    let again = "If its source can, let it send the event once more, as it should be; nothing stands under its identity.";
    let mut all = match row.reason.as_str() {
        "bad_value" => vec![
            again.to_owned(),
            format!("Or correct it here: `parked retry {number} --with FILE`, with the same source and id."),
        ],
        "conflict" => vec![
            "What stands first stays (I-1). If the second is a mistake of the sender, discard it.".to_owned(),
            format!(
                "If both happened, the second needs an id of its own: let the source send it so, or `parked retry {number} --with FILE`."
            ),
        ],
        "future" => vec![future(row)],
        "not_entitled" => vec![
            "Let it be sent by a principal that may say it, or extend the token's sources, nodes or pools and send it once more.".to_owned(),
            format!("To vouch for it: `parked retry {number}` takes it as said by an administrator."),
        ],
        "late_refused" => vec![
            "Its period is closed for longer than facts may change it (A-6): finance decides, and books what is owed as a recorded charge.".to_owned(),
            format!("A draft that is discarded reopens its period; then `parked retry {number}` takes it in."),
        ],
        _ => vec![format!("When its cause is gone: `parked retry {number}`.")],
    };
    all.push(discard);
    all
}

fn future(row: &ParkedRow) -> String {
    let wrong_clock = "If the source's clock was wrong, discard it and let the source send it once more.";
    match row.at_us.map(Instant::from_micros) {
        Some(at) => format!(
            "Nothing: the ledger takes it in by itself at {}, five minutes before its time. {wrong_clock}",
            at.plus(-SKEW_BOUND_US)
        ),
        None => format!("Nothing: the ledger takes it in by itself when it is due. {wrong_clock}"),
    }
}
