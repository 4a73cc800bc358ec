//! The JSON of a usage report, the same for the command line and the API (M-4, M-6): every number is text.

use gpuledger_domain::report::{GroupKey, UsageRow};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::Instant;
use serde_json::{Map, Value, json};

/// The members of a row behind its group keys, in the order in which tables show them.
pub const QUANTITIES: [&str; 10] = [
    "allocated_us",
    "unit_seconds",
    "gpu_seconds",
    "compute_slice_us",
    "memory_slice_us",
    "sm_active_us",
    "quality",
    "covered_us",
    "memory_byte_us",
    "energy_mj",
];

/// Microseconds in a second, as the scale of `…_seconds` members.
const SCALE: i128 = 1_000_000;
/// Decimals of a figure that has no finite decimal form.
const PLACES: usize = 9;

/// `{from, to, as_of, rows}` with one object per row: the group keys (null where a span has none), then the quantities.
/// `rows` were grouped by `keys`, in that order.
pub fn usage_json(from: Instant, to: Instant, as_of: Instant, keys: &[GroupKey], rows: &[UsageRow]) -> Value {
    let rows: Vec<Value> = rows.iter().map(|row| usage_row_json(keys, row)).collect();
    json!({"from": from.to_string(), "to": to.to_string(), "as_of": as_of.to_string(), "rows": rows})
}

/// One row as it stands in [`usage_json`].
pub fn usage_row_json(keys: &[GroupKey], row: &UsageRow) -> Value {
    let text = |number: i128| Value::String(number.to_string());
    let mut members: Map<String, Value> =
        keys.iter().map(GroupKey::name).zip(row.keys.iter().map(|key| json!(key))).collect();
    members.insert("allocated_us".into(), text(row.allocated_us));
    members.insert("unit_seconds".into(), Value::String(seconds_text(Share::from_integer(row.billed_us))));
    members
        .insert("gpu_seconds".into(), row.gpu_us.map_or(Value::Null, |us| Value::String(seconds_text(us))));
    members.insert("compute_slice_us".into(), row.compute_slice_us.map_or(Value::Null, text));
    members.insert("memory_slice_us".into(), row.memory_slice_us.map_or(Value::Null, text));
    members.insert("sm_active_us".into(), row.measured.sm_active_us.map_or(Value::Null, text));
    members.insert("quality".into(), Value::String(row.quality.clone()));
    members.insert("covered_us".into(), text(row.measured.covered_us));
    members.insert("memory_byte_us".into(), row.measured.memory_byte_us.map_or(Value::Null, text));
    members.insert("energy_mj".into(), row.measured.energy_mj.map_or(Value::Null, text));
    Value::Object(members)
}

/// Seconds of `micros` as a decimal without trailing zeros: exact where the decimal is finite, else rounded half away from zero
/// to 9 places.
pub fn seconds_text(micros: Share) -> String {
    let value = micros / Share::from_integer(SCALE);
    let (numerator, denominator) = (value.numer().unsigned_abs(), value.denom().unsigned_abs());
    let sign = if *value.numer() < 0 { "-" } else { "" };
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    if is_finite(denominator) {
        return format!("{sign}{whole}.{}", digits(rest, denominator, usize::MAX).0);
    }
    let (fraction, left) = digits(rest, denominator, PLACES);
    rounded(sign, whole, &fraction, left * 2 >= denominator)
}

/// Whether fractions with this denominator, in lowest terms, end.
fn is_finite(mut denominator: u128) -> bool {
    for factor in [2, 5] {
        while denominator.is_multiple_of(factor) {
            denominator /= factor;
        }
    }
    denominator == 1
}

/// Up to `limit` digits of `rest / denominator`, which is below 1, and what remains after them.
fn digits(mut rest: u128, denominator: u128, limit: usize) -> (String, u128) {
    let mut text = String::new();
    while rest != 0 && text.len() < limit {
        rest *= 10;
        text.push_str(&(rest / denominator).to_string());
        rest %= denominator;
    }
    (text, rest)
}

/// `whole.fraction`, one unit in the last place more where `up`, without trailing zeros.
fn rounded(sign: &str, whole: u128, fraction: &str, up: bool) -> String {
    let scale = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or_default());
    let scaled = fraction.parse::<u128>().unwrap_or_default() + u128::from(up);
    let (whole, fraction) = (whole + scaled / scale, scaled % scale);
    let text = format!("{sign}{whole}.{fraction:0width$}", width = PLACES);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::measured::Amounts;

    fn ratio(numerator: i128, denominator: i128) -> Share {
        Share::new(numerator, denominator)
    }

    #[test]
    fn seconds_are_exact_where_they_end() {
        assert_eq!(seconds_text(ratio(3_600_000_000, 1)), "3600");
        assert_eq!(seconds_text(ratio(1, 1)), "0.000001");
        assert_eq!(seconds_text(ratio(1, 8)), "0.000000125");
        assert_eq!(seconds_text(ratio(7_200_000_000, 16)), "450");
        assert_eq!(seconds_text(ratio(1, 1_048_576)), "0.00000000000095367431640625");
        assert_eq!(seconds_text(ratio(-1_500_000, 1)), "-1.5");
        assert_eq!(seconds_text(ratio(0, 1)), "0");
    }

    #[test]
    fn seconds_without_end_are_rounded_half_up_to_nine_places() {
        assert_eq!(seconds_text(ratio(1_000_000, 3)), "0.333333333");
        assert_eq!(seconds_text(ratio(2_000_000, 3)), "0.666666667");
        assert_eq!(seconds_text(ratio(1, 7)), "0.000000143");
        assert_eq!(seconds_text(ratio(2_999_999_999_999, 3_000_000)), "1");
        assert_eq!(seconds_text(ratio(1, 7_000_000)), "0");
    }

    #[test]
    fn rows_carry_the_group_keys_and_text_numbers() {
        let row = UsageRow {
            keys: vec![Some("acme".into()), None],
            allocated_us: 7_200_000_000,
            billed_us: 1_800_000_000,
            gpu_us: Some(ratio(3_600_000_000, 7)),
            compute_slice_us: Some(5_400_000_000),
            memory_slice_us: None,
            measured: Amounts { sm_active_us: Some(0), covered_us: 60_000_000, ..Amounts::default() },
            quality: "interval_mean".into(),
        };
        let keys = [GroupKey::Tenant, GroupKey::Label("team".into())];
        let at = |micros| Instant::from_micros(micros);
        let report = usage_json(at(0), at(3_600_000_000), at(7_200_000_000), &keys, &[row]);
        let expected = json!({
            "from": "1970-01-01T00:00:00Z", "to": "1970-01-01T01:00:00Z", "as_of": "1970-01-01T02:00:00Z",
            "rows": [{
                "tenant": "acme", "label.team": null, "allocated_us": "7200000000", "unit_seconds": "1800",
                "gpu_seconds": "514.285714286", "compute_slice_us": "5400000000", "memory_slice_us": null,
                "sm_active_us": "0", "quality": "interval_mean", "covered_us": "60000000", "memory_byte_us": null,
                "energy_mj": null,
            }],
        });
        assert_eq!(report, expected);
        let members: Vec<&String> = report["rows"][0].as_object().unwrap().keys().collect();
        assert_eq!(members.len(), keys.len() + QUANTITIES.len());
        assert!(QUANTITIES.iter().all(|name| members.iter().any(|member| member == name)));
    }
}
