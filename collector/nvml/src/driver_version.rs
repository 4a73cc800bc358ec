//! The driver's version, where it decides which function may be called.

/// `major.minor` of a driver: (535, 86) of `535.86.10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DriverVersion(u32, u32);

impl DriverVersion {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('.');
        Some(Self(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Drivers 535.43 to 535.86 write records of 32 bytes through the third version of the process lists, where every header has 24: past the
    /// end of the room for them. 535.98 took that back (nvitop issues 79 and 89).
    pub(crate) fn has_long_process_records(self) -> bool {
        Self(535, 43) <= self && self < Self(535, 98)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_by_number() {
        assert_eq!(DriverVersion::parse("535.86.10"), Some(DriverVersion(535, 86)));
        assert_eq!(DriverVersion::parse("580.9"), Some(DriverVersion(580, 9)));
        assert!(DriverVersion(580, 9) < DriverVersion(580, 82));
        assert_eq!(DriverVersion::parse(""), None);
        assert_eq!(DriverVersion::parse("r535.1"), None);
    }

    #[test]
    fn only_the_drivers_that_write_too_much_are_named() {
        let long = |text| DriverVersion::parse(text).is_some_and(DriverVersion::has_long_process_records);
        assert!(long("535.43.02"));
        assert!(long("535.86.05"));
        assert!(!long("535.98"));
        assert!(!long("535.129.03"));
        assert!(!long("530.41.03"));
        assert!(!long("550.54.15"));
    }
}
