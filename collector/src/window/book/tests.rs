use super::*;
use crate::process::ProcessId;
use proptest::prelude::*;

const DEVICE: Subject = Subject::Unit(UnitKey::Device);
const S: i64 = 1_000_000;

fn book() -> Book {
    Book::new(Name::new("GPU-1").unwrap(), Frame::new(10 * S))
}

fn at(micros: i64) -> Instant {
    Instant::from_micros(micros)
}

fn over(from: i64, to: i64) -> Window {
    Window::new(at(from), at(to)).unwrap()
}

fn sm(parts: &[Part]) -> Vec<(i64, i64)> {
    let of = |part: &Part| {
        let unit = &part.units[0];
        (unit.sm_active_us.map_or(-1, |n| n.get()), unit.covered_us.get())
    };
    parts.iter().map(of).collect()
}

#[test]
fn an_amount_is_split_at_edges_in_proportion() {
    let mut book = book();
    let amount = 4_000_000 * 1_000_000;
    book.add(DEVICE, Measure::Sm, over(9 * S, 13 * S), amount, Quality::IntervalMean);
    assert_eq!(sm(&book.flush()), [(1_000_000, 1_000_000), (3_000_000, 3_000_000)]);
}

#[test]
fn what_rounding_leaves_over_goes_to_the_next_window() {
    let mut book = book();
    for window in 0..3 {
        let from = window * 10 * S;
        let amount = 500_000 * 3;
        book.add(DEVICE, Measure::Sm, over(from, from + 3), amount, Quality::IntervalMean);
    }
    let told: Vec<i64> = sm(&book.flush()).iter().map(|(sm, _)| *sm).collect();
    assert_eq!(told, [1, 2, 1], "three halves of three microseconds are four and a half");
}

#[test]
fn no_microsecond_is_covered_twice() {
    let mut book = book();
    let whole = |window: Window| u128::try_from(window.micros()).unwrap() * 1_000_000;
    for window in [over(0, 4 * S), over(2 * S, 6 * S), over(S, 3 * S)] {
        book.add(DEVICE, Measure::Sm, window, whole(window), Quality::IntervalMean);
    }
    assert_eq!(sm(&book.flush()), [(6_000_000, 6_000_000)]);
}

#[test]
fn nothing_is_added_to_a_window_that_was_told() {
    let mut book = book();
    book.unit(at(0), UnitKey::Device, Err(Absent::NotSupported));
    assert_eq!(book.close_before(at(10 * S)).len(), 1);
    book.add(DEVICE, Measure::Sm, over(8 * S, 12 * S), 4_000_000_000_000, Quality::IntervalMean);
    assert_eq!(sm(&book.flush()), [(2_000_000, 2_000_000)]);
}

#[test]
fn a_window_of_several_labels_carries_the_weakest() {
    let mut book = book();
    book.add(DEVICE, Measure::Sm, over(0, S), 0, Quality::IntervalMean);
    book.add(DEVICE, Measure::Sm, over(S, 2 * S), 0, Quality::POINT);
    book.absent(at(3 * S), DEVICE, Measure::Sm, Quality::from(Absent::Lost));
    let quality = &book.flush()[0].units[0].quality;
    assert_eq!(quality[&Name::new("sm_active_us").unwrap()].as_str(), "point_gauge");
    assert_eq!(quality[&Name::new("memory_byte_us").unwrap()].as_str(), "unavailable(not_yet)");
}

#[test]
fn each_reading_carries_the_time_it_covers_m_8() {
    let mut book = book();
    book.add(DEVICE, Measure::Sm, over(0, 10 * S), 0, Quality::IntervalMean);
    book.add(DEVICE, Measure::Memory, over(0, 4 * S), 0, Quality::POINT);
    book.add(DEVICE, Measure::Energy, over(0, 9 * S), 0, Quality::DriverCounter { shared: false });
    for measure in [Measure::Sm, Measure::Memory] {
        book.add(DEVICE, measure, over(10 * S, 20 * S), 0, Quality::POINT);
    }
    let parts = book.flush();
    let unit = &parts[0].units[0];
    let covered = |reading| unit.covered_us_of(reading).get() / S;
    assert_eq!(unit.covered_us.get(), 4 * S, "the least of them");
    assert_eq!(["sm_active_us", "memory_byte_us", "energy_mj"].map(covered), [10, 4, 9]);
    assert_eq!(unit.coverage.len(), 2, "that of memory is the row's");
    assert!(parts[1].units[0].coverage.is_empty(), "all the same");
}

#[test]
fn gaps_of_one_reason_that_touch_are_one() {
    let mut book = book();
    book.gap(over(S, 2 * S), Why::Paused);
    book.gap(over(2 * S, 3 * S), Why::Paused);
    book.gap(over(3 * S, 4 * S), Why::Torn);
    let gaps = &book.flush()[0].gaps;
    let told: Vec<(i64, &str)> =
        gaps.iter().map(|gap| (gap.end.get().as_micros() / S, gap.reason.as_str())).collect();
    assert_eq!(told, [(3, "paused(GPU-1)"), (4, "torn(GPU-1)")]);
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut book = book();
    let process = ProcessId { pid: 7, started_at: at(0) };
    let key = ProcessKey { unit: UnitKey::Device, process };
    let owner = Arc::new(Owner::Unknown(crate::process::Unknown::Vanished));
    book.process(at(0), key, &owner);
    book.add(Subject::Process(key), Measure::Sm, over(0, S), 0, Quality::IntervalMean);
    book.unit(at(30 * S), UnitKey::Device, Err(Absent::NotSupported));
    book.close_before(at(10 * S));
    assert_eq!(book.owners.len(), 1, "the last part may still come");
    book.close_before(at(40 * S));
    assert_eq!((book.owners.len(), book.told.len()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// In any order, with any overlap and whenever windows are closed: no window covers more than its length, and what is told is never
    /// more than what was added.
    #[test]
    fn covered_is_never_above_elapsed(
        adds in prop::collection::vec((0..100_000_000_i64, 1..30_000_000_i64, 0..=1_000_000_u128, any::<bool>()), 0..40)
    ) {
        let mut book = book();
        let mut parts = Vec::new();
        let mut added = 0;
        for (from, length, ppm, closes) in adds {
            let window = over(from, from + length);
            let amount = u128::try_from(length).unwrap() * ppm;
            added += amount;
            book.add(DEVICE, Measure::Sm, window, amount, Quality::IntervalMean);
            if closes {
                parts.extend(book.close_before(at(from)));
            }
        }
        parts.extend(book.flush());
        let mut told = 0;
        for part in &parts {
            let unit = &part.units[0];
            prop_assert!(unit.covered_us.get() <= part.window.micros());
            prop_assert!(unit.sm_active_us.map_or(0, |n| n.get()) <= unit.covered_us.get());
            told += u128::try_from(unit.sm_active_us.map_or(0, |n| n.get())).unwrap();
        }
        prop_assert!(told * 1_000_000 <= added);
        let edges: Vec<Instant> = parts.iter().map(|part| part.window.start()).collect();
        prop_assert!(edges.is_sorted_by(|a, b| a < b), "{edges:?}");
    }

    /// What accrues without a hole is told to the last microsecond, however it was cut.
    #[test]
    fn nothing_is_lost_by_cutting(lengths in prop::collection::vec((1..5_000_000_i64, 0..=1_000_000_u128), 1..60)) {
        let mut book = book();
        let (mut from, mut added) = (0, 0);
        for (length, ppm) in lengths {
            let amount = u128::try_from(length).unwrap() * ppm;
            book.add(DEVICE, Measure::Sm, over(from, from + length), amount, Quality::IntervalMean);
            added += amount;
            from += length;
        }
        let told: i64 = sm(&book.flush()).iter().map(|(sm, _)| *sm).sum();
        prop_assert_eq!(u128::try_from(told).unwrap(), added / 1_000_000);
    }
}
