//! What the program is asked for each section of a case, and whether its answer is what the case says.

use gpuledger_cases::{BalanceRow, Expect, FindingRow, InvoiceRow, UsageRow, asks_for};
use gpuledger_domain::time::{Instant, Window};
use num_rational::Ratio;
use serde_json::Value;
use std::fmt::Debug;

/// The words of the command.
pub(crate) fn question(expect: &Expect) -> Vec<String> {
    let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut words = match expect {
        Expect::Balance { over, .. } => [text(&["ledger", "balance"]), span(*over)].concat(),
        Expect::Usage { over, weight, by, .. } => {
            let weight = weight.iter().flat_map(|weight| ["--weight".to_owned(), weight.clone()]).collect();
            [text(&["usage", "--group-by", &by.join(",")]), span(*over), weight].concat()
        }
        Expect::Findings { .. } => text(&["findings"]),
        Expect::Parked(_) => text(&["parked", "list"]),
        Expect::Invoice { tenant, period, .. } => {
            text(&["invoice", "show", "--tenant", tenant, "--period", period])
        }
    };
    words.extend(text(&["--format", "json"]));
    words
}

/// All time that a case may lie in, where it names none.
fn span(over: Option<Window>) -> Vec<String> {
    let (from, to) = over.map_or_else(
        || ("2026-01-01T00:00:00Z".to_owned(), "2027-12-01T00:00:00Z".to_owned()),
        |over| (over.start().to_string(), over.end().to_string()),
    );
    vec!["--from".to_owned(), from, "--to".to_owned(), to]
}

/// Compares the answer with the case.
pub(crate) fn stands(expect: &Expect, answer: &Value) -> Result<(), String> {
    match expect {
        Expect::Balance { rows, .. } => same(rows, list(answer, "rows"), balance_is),
        Expect::Usage { by, rows, .. } => {
            let mut there = list(answer, "rows");
            let zero = |row: &Value, name: &str| {
                row[name].as_str().and_then(number).is_none_or(|n| n == Ratio::from_integer(0))
            };
            there.retain(|row| !(zero(row, "allocated_us") && zero(row, "unit_seconds")));
            same(rows, there, |want, row| usage_is(want, by, row))
        }
        Expect::Findings { of, rows } => {
            let mut there = list(answer, "findings");
            there.retain(|row| asks_for(of, row["kind"].as_str().unwrap_or_default()));
            same(rows, there, finding_is)
        }
        Expect::Parked(rows) => same(rows, list(answer, "rows"), |(reason, event), row| {
            row["reason"] == reason.as_str() && row["id"] == event.as_str()
        }),
        Expect::Invoice { rows, .. } => invoice(rows, answer),
    }
}

fn list(answer: &Value, member: &str) -> Vec<Value> {
    answer[member].as_array().cloned().unwrap_or_default()
}

/// Each wanted row is like one that is there, and none is left over.
fn same<W: Debug>(wanted: &[W], there: Vec<Value>, like: impl Fn(&W, &Value) -> bool) -> Result<(), String> {
    let mut left = there;
    let mut fell = String::new();
    for want in wanted {
        match left.iter().position(|row| like(want, row)) {
            Some(at) => drop(left.remove(at)),
            None => fell.push_str(&format!("\n      missing    {want:?}")),
        }
    }
    for row in left {
        fell.push_str(&format!("\n      unexpected {row}"));
    }
    if fell.is_empty() { Ok(()) } else { Err(fell) }
}

fn balance_is(want: &BalanceRow, row: &Value) -> bool {
    let account = row["tenant"].as_str().or(row["account"].as_str());
    row["gpu"] == want.gpu.as_str()
        && account == Some(&want.account)
        && whole(&row["compute_slice_us"]) == Some(want.compute_slice_us)
        && whole(&row["memory_slice_us"]) == Some(want.memory_slice_us)
}

fn usage_is(want: &UsageRow, by: &[String], row: &Value) -> bool {
    let seconds =
        |name: &str| row[name].as_str().and_then(number).map(|n| n * Ratio::from_integer(1_000_000));
    let slices = whole(&row["compute_slice_us"]).zip(whole(&row["memory_slice_us"]));
    by.iter().zip(&want.keys).all(|(key, value)| row[key].as_str() == value.as_deref())
        && want.held.is_none_or(|held| whole(&row["allocated_us"]) == Some(held))
        && want.billed.is_none_or(|billed| seconds("unit_seconds") == Some(Ratio::from_integer(billed)))
        && want.gpu.is_none_or(|gpu| seconds("gpu_seconds") == Some(gpu))
        && want.sm.is_none_or(|sm| whole(&row["sm_active_us"]) == sm)
        && want.slices.is_none_or(|wanted| wanted == slices)
}

fn finding_is(want: &FindingRow, row: &Value) -> bool {
    let at = |name: &str| row[name].as_str().and_then(|text| gpuledger_wire::time::parse_time(text).ok());
    let since: Option<Instant> = at("since");
    row["kind"] == want.kind.as_str()
        && row["subject"] == want.subject.as_str()
        && want.since.is_none_or(|wanted| Some(wanted) == since)
        && want.until.is_none_or(|wanted| wanted == at("until"))
        && want
            .names
            .iter()
            .all(|name| row["detail"].as_str().is_some_and(|detail| detail.contains(name.as_str())))
}

/// Lines are complete; of a line and of the document only the members that are written are looked at.
fn invoice(rows: &[InvoiceRow], document: &Value) -> Result<(), String> {
    let (lines, sums): (Vec<&InvoiceRow>, Vec<&InvoiceRow>) = rows.iter().partition(|row| row.line);
    same(&lines, list(document, "lines"), |want, line| members_are(want, line))?;
    match sums.iter().find(|sum| !members_are(sum, document)) {
        None => Ok(()),
        Some(sum) => Err(format!("\n      missing    {sum:?}\n      in {document}")),
    }
}

fn members_are(want: &InvoiceRow, there: &Value) -> bool {
    want.members.iter().all(|(path, value)| {
        let member = path.split('.').try_fold(there, |at, name| match name.parse::<usize>() {
            Ok(index) => at.get(index),
            Err(_) => at.get(name),
        });
        let text = match member {
            None | Some(Value::Null) => "-".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        text == *value || is_same_number(&text, value)
    })
}

/// `3600` and `3600.0` are one quantity; amounts of money are compared as they stand.
fn is_same_number(one: &str, other: &str) -> bool {
    !other.contains('.') && number(one).is_some() && number(one) == number(other)
}

fn whole(value: &Value) -> Option<i128> {
    value.as_str().and_then(|text| text.parse().ok())
}

/// A decimal, exactly.
fn number(text: &str) -> Option<Ratio<i128>> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let all: i128 = format!("{whole}{fraction}").parse().ok()?;
    Some(Ratio::new(sign * all, scale))
}
