//! What the name of a MIG device says of its profiles.

/// `NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb`: the compute instance's profile, and within it the GPU instance's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) profile: String,
    pub(super) compute_profile: Option<String>,
}

impl Name {
    /// None: not the name of a MIG device.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, spoken) = text.rsplit_once(" MIG ")?;
        let spoken = spoken.trim();
        let (first, rest) = spoken.split_once('.')?;
        match first.strip_suffix('c').filter(|count| count.parse::<u32>().is_ok()) {
            Some(_) => Some(Self { profile: rest.to_owned(), compute_profile: Some(spoken.to_owned()) }),
            None => Some(Self { profile: spoken.to_owned(), compute_profile: None }),
        }
    }
}

/// The name of a profile as tables give it, `MIG 3g.40gb` or `3g.40gb`.
pub(super) fn of_profile(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix("MIG ").unwrap_or(text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(String, Option<String>)> {
        Name::parse(text).map(|name| (name.profile, name.compute_profile))
    }

    #[test]
    fn the_profile_stands_behind_the_model() {
        assert_eq!(parsed("NVIDIA H100 80GB HBM3 MIG 3g.40gb"), Some(("3g.40gb".into(), None)));
        assert_eq!(parsed("NVIDIA A30 MIG 1g.6gb+me"), Some(("1g.6gb+me".into(), None)));
    }

    #[test]
    fn a_part_of_a_gpu_instance_names_both_profiles() {
        let both = Some(("3g.40gb".into(), Some("1c.3g.40gb".into())));
        assert_eq!(parsed("NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb"), both);
    }

    #[test]
    fn another_name_says_nothing() {
        assert_eq!(parsed("NVIDIA A100-SXM4-80GB"), None);
        assert_eq!(parsed("NVIDIA A100 MIG "), None);
    }

    #[test]
    fn profile_names_are_taken_with_and_without_their_word() {
        assert_eq!(of_profile("MIG 1g.10gb+me"), "1g.10gb+me");
        assert_eq!(of_profile("1g.10gb+me"), "1g.10gb+me");
    }
}
