//! Names of things, one type each, so that a tenant can never stand where an allocation is meant.

use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id with this text.
            pub fn new(text: &str) -> Self {
                Self(Arc::from(text))
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

id!(
    /// Who uses and is metered.
    TenantId
);
id!(
    /// A tenant's sub-account.
    ProjectId
);
id!(
    /// A host.
    NodeId
);
id!(
    /// A physical device, by the vendor's UUID.
    GpuId
);
id!(
    /// A tenant's hold on units, as its allocator names it.
    AllocationId
);
id!(
    /// The priced kind of unit.
    SkuId
);
id!(
    /// A scrub, as the scrubber names it.
    ScrubId
);
id!(
    /// The CloudEvents `source` of a fact: the principal who says it (I-5).
    Source
);

impl Source {
    /// Whether an allocator speaks: its facts about a unit are proof of life of the unit's node.
    pub fn is_allocator(&self) -> bool {
        self.as_str().starts_with("/allocators/")
    }
}
