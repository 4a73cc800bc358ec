//! What a process declares of itself in its environment.

use gpuledger_wire::text::Name;

/// The number in `SLURM_JOB_ID`, if it is one. Anybody may write anything there.
pub(super) fn slurm_job(environ: &[u8]) -> Option<Name> {
    let value = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"SLURM_JOB_ID="))?;
    job_number(std::str::from_utf8(value).ok()?)
}

/// A Slurm job's number: 1 to 10 digits (32 bits).
pub(super) fn job_number(text: &str) -> Option<Name> {
    let digits = (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Name::new(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_found_among_other_variables() {
        let environ = b"PATH=/bin\0SLURM_JOB_ID_X=1\0X=\xff\0SLURM_JOB_ID=4711\0HOME=/root\0";
        assert_eq!(slurm_job(environ).unwrap().as_str(), "4711");
    }

    #[test]
    fn what_is_no_number_is_no_job() {
        for environ in [
            &b""[..],
            b"SLURM_JOB_ID=\0",
            b"SLURM_JOB_ID=42a\0",
            b"SLURM_JOB_ID=12345678901\0",
            b"SLURM_JOB_ID=\xff\0",
        ] {
            assert_eq!(slurm_job(environ), None, "{}", String::from_utf8_lossy(environ));
        }
    }
}
