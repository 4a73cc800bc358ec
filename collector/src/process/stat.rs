//! `PID/stat`: when a process began.

use gpuledger_domain::time::SECOND_US;

/// The kernel's ticks a second as user space sees them: fixed at 100 in the ABI of x86-64 and of arm64.
const TICKS_PER_SECOND: i64 = 100;
/// Place of the start time (field 22) among the fields behind the command: the state (field 3) is the first of them.
const START: usize = 22 - 3;

/// Microseconds from the node's boot to the start of the process. None: the text is not complete, as of a process that just ended.
///
/// The command in brackets may hold anything, brackets and line ends too, so that the fields are counted from the last closing one.
pub(super) fn started_us(stat: &[u8]) -> Option<i64> {
    let bracket = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&stat[bracket + 1..]).ok()?;
    let ticks: i64 = fields.split_ascii_whitespace().nth(START)?.parse().ok()?;
    ticks.checked_mul(SECOND_US / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "S 1 2 3 0 -1 4194304 5 6 7 8 9 10 11 12 20 0 1 0 123456 1000 20";

    #[test]
    fn the_start_is_field_22_in_hundredths_of_a_second() {
        let stat = format!("42 (python) {REST}");
        assert_eq!(started_us(stat.as_bytes()), Some(1_234_560_000));
    }

    #[test]
    fn a_command_may_hold_brackets_blanks_and_bytes() {
        for command in [&b"a) R 1 2 (b"[..], b"))", b"(", b"tab\there\n", b"\xff\xfe) S 9"] {
            let mut stat = b"42 (".to_vec();
            stat.extend_from_slice(command);
            stat.extend_from_slice(format!(") {REST}\n").as_bytes());
            assert_eq!(started_us(&stat), Some(1_234_560_000), "{}", String::from_utf8_lossy(command));
        }
    }

    #[test]
    fn a_torn_text_is_no_process() {
        for torn in [
            "",
            "42",
            "42 (python",
            "42 (python) S 1 2",
            "42 (python) Z 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 x",
        ] {
            assert_eq!(started_us(torn.as_bytes()), None, "{torn}");
        }
    }
}
