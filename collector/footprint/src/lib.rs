//! A node agent lives for months and needs most of its code once: command line, settings, handshakes, the first probe of each device. The
//! kernel maps file pages 64 KiB around each first touch and takes none back while memory is free, and the allocator keeps what was freed: both
//! stay resident for ever. This gives them back; code that is needed again is mapped again from the page cache, by a minor fault.

mod mappings;

use mappings::unchanged_file_mappings;
use std::io;
use std::ptr;

/// Gives back all resident pages of files that this process maps and never wrote to: code and constants of the program and its libraries.
/// Returns the bytes of the mappings that were advised on.
///
/// # Errors
/// `/proc/self/smaps` cannot be read, or the kernel refuses the advice.
pub fn give_back_file_pages() -> io::Result<usize> {
    let listed = std::fs::read_to_string("/proc/self/smaps")?;
    let mut bytes = 0;
    for range in unchanged_file_mappings(&listed) {
        let length = range.end - range.start;
        let start = ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: the pages are those of a file, were never written to (the kernel counts no anonymous page among them) and cannot be (the mapping is
        // not writable), so what is read from them after this is what was read before. A library that is unloaded meanwhile leaves a
        // hole, for which the call fails, or makes room for a mapping that the loader fills after it has mapped it: `unchanged_file_mappings`
        // takes no anonymous memory, and the caller loads no library at the same time.
        unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxDontNeed) }?;
        bytes += length;
    }
    Ok(bytes)
}

/// Has the allocator keep little of what is freed. By default each thread gets a heap of its own, which keeps what that thread once needed, and
/// the sizes above which memory goes back at once grow with the largest block that was ever freed. Threads that mostly wait for a device gain
/// nothing from the one, and answers to scrapes should not stay for ever by the other. Call it before the first thread is started; false
/// where the allocator refuses.
#[cfg(target_env = "gnu")]
pub fn keep_heap_small() -> bool {
    // A limit that is set does not grow any more (mallopt(3)).
    [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, BLOCK_BYTES), (libc::M_TRIM_THRESHOLD, BLOCK_BYTES)]
        .into_iter()
        // SAFETY: `mallopt` takes the allocator's own lock and sets a number in it.
        .all(|(limit, value)| unsafe { libc::mallopt(limit, value) } == 1)
}

/// Blocks of this size and more have pages of their own; so much of freed memory at the heap's end is kept. In bytes.
#[cfg(target_env = "gnu")]
const BLOCK_BYTES: i32 = 64 * 1024;

/// Gives memory that was freed, and that the allocator keeps for later, back to the kernel.
#[cfg(target_env = "gnu")]
pub fn give_back_freed_memory() {
    // SAFETY: `malloc_trim` takes the allocator's own locks and releases pages that no allocation uses; every thread may call it.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_on_after_its_pages_were_given_back() {
        assert!(keep_heap_small());
        give_back_freed_memory();
        assert!(give_back_file_pages().unwrap() > 0);
        assert_eq!("still here".to_uppercase(), "STILL HERE");
    }
}
