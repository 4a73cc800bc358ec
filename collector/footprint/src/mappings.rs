//! `/proc/PID/smaps` (proc(5)): a head line for each mapping, then its counters.

use std::ops::Range;

/// Address ranges of mappings of files that cannot be written to and of which no page was copied on a write: relocated
/// constants, which are written once by the loader and protected afterwards, count as copied.
pub(crate) fn unchanged_file_mappings(smaps: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<Mapping> = None;
    for line in smaps.lines() {
        if let Some(next) = Mapping::head(line) {
            found.extend(open.replace(next).and_then(Mapping::unchanged));
        } else if let Some(mapping) = &mut open {
            mapping.count(line);
        }
    }
    found.extend(open.and_then(Mapping::unchanged));
    found
}

struct Mapping {
    range: Range<usize>,
    is_read_only_file: bool,
    /// Copied pages, in memory or in swap, in KiB; none where the kernel does not tell.
    copied_kib: Option<u64>,
}

impl Mapping {
    /// `55d0c000-55d0d000 r-xp 00001000 fd:01 1234   /usr/bin/program`; none for a line of counters.
    fn head(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let range = address(start)?..address(end)?;
        let rights = words.next()?;
        let is_file = words.nth(3).is_some_and(|name| name.starts_with('/'));
        let is_read_only = rights.starts_with('r') && !rights.contains('w') && rights.ends_with('p');
        Some(Self { range, is_read_only_file: is_file && is_read_only, copied_kib: None })
    }

    fn count(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else { return };
        if matches!(name, "Anonymous" | "Swap") {
            let kib: Option<u64> = value.trim().strip_suffix(" kB").and_then(|n| n.parse().ok());
            self.copied_kib = kib.map(|kib| kib + self.copied_kib.unwrap_or_default());
        }
    }

    fn unchanged(self) -> Option<Range<usize>> {
        (self.is_read_only_file && self.copied_kib == Some(0)).then_some(self.range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0c000-55d0d000 r--p 00000000 fd:01 12 /usr/bin/program
Rss:                   4 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
55d0d000-55d0f000 r-xp 00001000 fd:01 12 /usr/bin/program
Anonymous:             0 kB
Swap:                  0 kB
55d10000-55d11000 r--p 00004000 fd:01 12 /usr/bin/program
Anonymous:             4 kB
Swap:                  0 kB
55d11000-55d12000 rw-p 00005000 fd:01 12 /usr/bin/program
Anonymous:             0 kB
Swap:                  0 kB
7f000000-7f001000 r--p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
7f100000-7f101000 r--s 00000000 fd:01 13 /var/cache/shared
Anonymous:             0 kB
Swap:                  0 kB
7f200000-7f201000 r--p 00000000 fd:01 14 /usr/lib/swapped.so
Anonymous:             0 kB
Swap:                  4 kB
7f300000-7f301000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
Swap:                  0 kB
7f400000-7f401000 r-xp 00000000 fd:01 15 /usr/lib/untold.so
Rss:                   4 kB
";

    #[test]
    fn only_private_files_that_nobody_wrote_to_are_given_back() {
        assert_eq!(unchanged_file_mappings(SMAPS), [0x55d0_c000..0x55d0_d000, 0x55d0_d000..0x55d0_f000]);
    }
}
