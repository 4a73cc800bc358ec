use super::*;

#[test]
fn a_share_that_changes_is_integrated_exactly() {
    let mut track = Track::new(1_000_000);
    track.set(10, Share::Constant(500_000));
    track.set(30, Share::Constant(1));
    assert_eq!(track.until(10), 0);
    assert_eq!(track.until(30), 10_000_000);
    assert_eq!(track.until(130), 10_000_100);
    assert_eq!((track.at(9), track.at(10), track.at(30)), (0, 500_000, 1));
    assert_eq!(track.busy_us(0, 1_000_000_000), 10 + 999);
}

#[test]
fn cells_repeat_and_add_up_over_any_cut() {
    let mut track = Track::new(7);
    let ppm: [u32; CELLS] = std::array::from_fn(|i| u32::try_from(i).unwrap() * 15_000);
    track.set(3, Share::cells(ppm));
    let slow: u128 = (3..3000_u64).map(|t| u128::from(ppm[usize::try_from(t / 7 % 64).unwrap()])).sum();
    assert_eq!(track.until(3000), slow);
    let cuts = [0, 5, 6, 100, 449, 2000, 3000];
    let parts: u64 = cuts.windows(2).map(|cut| track.busy_us(cut[0], cut[1])).sum();
    assert_eq!(parts, track.busy_us(0, 3000));
}

#[test]
fn memory_is_held_until_it_changes() {
    let mut memory = Amount::default();
    memory.set(5, 100);
    memory.set(15, 300);
    memory.set(25, 0);
    assert_eq!(memory.byte_us(0, 100), 1000 + 3000);
    assert_eq!((memory.most(0, 15), memory.most(0, 16), memory.most(26, 30)), (100, 300, 0));
}
