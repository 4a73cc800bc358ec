//! MIG geometry of each family.

use super::{Geometry, Profile};

const ONE: &[u32] = &[0, 1, 2, 3, 4, 5, 6];
const ONE_DOUBLE: &[u32] = &[0, 2, 4, 6];
const TWO: &[u32] = &[0, 2, 4];
const THREE: &[u32] = &[0, 4];
const WHOLE: &[u32] = &[0];

/// Names, SM counts and memory of one family with 8 memory slices; ids and placements are the same for all of them.
struct Eight {
    names: [&'static str; 7],
    multiprocessors: [u32; 7],
    memory_mib: [u64; 7],
    unsure_from: usize,
    has_media_in_all: bool,
}

/// (id, number, compute slices, memory slices, starts, most instances).
type Shape = (u32, u32, u32, u32, &'static [u32], u32);

/// 1g, 1g+me, 1g with double memory, 2g, 3g, 4g, 7g.
const SHAPES: [Shape; 7] = [
    (19, 0, 1, 1, ONE, 7),
    (20, 7, 1, 1, ONE, 1),
    (15, 9, 1, 2, ONE_DOUBLE, 4),
    (14, 1, 2, 2, TWO, 3),
    (9, 2, 3, 4, THREE, 2),
    (5, 3, 4, 4, WHOLE, 1),
    (0, 4, 7, 8, WHOLE, 1),
];

/// Decoders of A100, whose small instances have none.
const DECODERS_A100: [u32; 7] = [0, 1, 1, 1, 2, 2, 5];

const fn eight(family: &Eight) -> [Profile; 7] {
    [
        shape(family, 0),
        shape(family, 1),
        shape(family, 2),
        shape(family, 3),
        shape(family, 4),
        shape(family, 5),
        shape(family, 6),
    ]
}

const fn shape(family: &Eight, i: usize) -> Profile {
    let (id, number, compute_slices, memory_slices, starts, max_instances) = SHAPES[i];
    let has_extras = i == 1 || i == 6;
    let one = if has_extras { 1 } else { 0 };
    Profile {
        id,
        number,
        name: family.names[i],
        compute_slices,
        memory_slices,
        starts,
        max_instances,
        multiprocessors: family.multiprocessors[i],
        memory_mib: family.memory_mib[i],
        copy_engines: compute_slices,
        decoders: if family.has_media_in_all { compute_slices } else { DECODERS_A100[i] },
        jpegs: if family.has_media_in_all { compute_slices } else { one },
        optical_flow: one,
        is_unsure: i >= family.unsure_from,
    }
}

/// Counts with the 1g that has twice the memory: it has more multiprocessors than a plain 1g from Hopper on.
const SMS_A100: [u32; 7] = [14, 14, 14, 28, 42, 56, 98];
const SMS_HOPPER: [u32; 7] = [16, 16, 26, 32, 60, 64, 132];
/// Beyond 2g no public count was found for Blackwell.
const SMS_B200: [u32; 7] = [18, 18, 30, 36, 70, 72, 148];
const SMS_GB200: [u32; 7] = [18, 18, 32, 38, 70, 76, 152];

const fn whole(profiles: &'static [Profile]) -> Geometry {
    Geometry { memory_slices: 8, compute_slices: 7, profiles }
}

static A100_40_PROFILES: [Profile; 7] = eight(&Eight {
    names: ["1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"],
    multiprocessors: SMS_A100,
    memory_mib: [4864, 4864, 9856, 9984, 20096, 20096, 40192],
    unsure_from: 7,
    has_media_in_all: false,
});
static A100_80_PROFILES: [Profile; 7] = eight(&Eight {
    names: ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"],
    multiprocessors: SMS_A100,
    memory_mib: [9856, 9856, 19968, 19968, 40192, 40192, 80384],
    unsure_from: 7,
    has_media_in_all: false,
});
static H100_80_PROFILES: [Profile; 7] = eight(&Eight {
    names: ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"],
    multiprocessors: SMS_HOPPER,
    memory_mib: [9984, 9984, 20096, 20096, 40448, 40448, 81152],
    unsure_from: 7,
    has_media_in_all: true,
});
static H100_NVL_PROFILES: [Profile; 7] = eight(&Eight {
    names: ["1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"],
    multiprocessors: SMS_HOPPER,
    memory_mib: [11264, 11264, 23552, 23552, 47488, 47488, 95360],
    unsure_from: 7,
    has_media_in_all: true,
});
static H200_PROFILES: [Profile; 7] = eight(&Eight {
    names: ["1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"],
    multiprocessors: SMS_HOPPER,
    memory_mib: [16384, 16384, 33280, 33280, 70656, 70656, 143360],
    unsure_from: 0,
    has_media_in_all: true,
});
static B200_PROFILES: [Profile; 7] = eight(&Eight {
    names: ["1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"],
    multiprocessors: SMS_B200,
    memory_mib: [20992, 20992, 45312, 45312, 91136, 91136, 182784],
    unsure_from: 4,
    has_media_in_all: true,
});
static GB200_PROFILES: [Profile; 7] = eight(&Eight {
    names: ["1g.23gb", "1g.23gb+me", "1g.47gb", "2g.47gb", "3g.95gb", "4g.95gb", "7g.189gb"],
    multiprocessors: SMS_GB200,
    memory_mib: [20480, 20480, 46592, 46592, 94208, 94208, 188928],
    unsure_from: 4,
    has_media_in_all: true,
});

const fn a30(
    shape: (u32, u32, u32, &'static [u32], u32),
    name: &'static str,
    multiprocessors: u32,
    memory_mib: u64,
    media: u32,
) -> Profile {
    let (id, number, slices, starts, max_instances) = shape;
    Profile {
        id,
        number,
        name,
        compute_slices: slices,
        memory_slices: slices,
        starts,
        max_instances,
        multiprocessors,
        memory_mib,
        copy_engines: slices,
        decoders: if slices == 4 { 4 } else { slices - 1 + media },
        jpegs: media,
        optical_flow: media,
        is_unsure: false,
    }
}

static A30_PROFILES: [Profile; 5] = [
    a30((14, 0, 1, &[0, 1, 2, 3], 4), "1g.6gb", 14, 5952, 0),
    a30((21, 7, 1, &[0, 1, 2, 3], 1), "1g.6gb+me", 14, 5952, 1),
    a30((5, 1, 2, &[0, 2], 2), "2g.12gb", 28, 11968, 0),
    a30((6, 8, 2, &[0, 2], 1), "2g.12gb+me", 28, 11968, 1),
    a30((0, 3, 4, WHOLE, 1), "4g.24gb", 56, 24064, 1),
];

pub(super) static A30: Geometry = Geometry { memory_slices: 4, compute_slices: 4, profiles: &A30_PROFILES };
pub(super) static A100_40: Geometry = whole(&A100_40_PROFILES);
pub(super) static A100_80: Geometry = whole(&A100_80_PROFILES);
pub(super) static H100_80: Geometry = whole(&H100_80_PROFILES);
pub(super) static H100_NVL: Geometry = whole(&H100_NVL_PROFILES);
pub(super) static H200: Geometry = whole(&H200_PROFILES);
pub(super) static B200: Geometry = whole(&B200_PROFILES);
pub(super) static GB200: Geometry = whole(&GB200_PROFILES);
