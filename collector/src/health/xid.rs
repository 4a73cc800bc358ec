//! Xid errors: what their numbers mean for the bill.
//!
//! Numbers and meanings are those of NVIDIA's public Xid catalogue (docs.nvidia.com/deploy/xid-errors). Its resolution decides the class: an error
//! that ends with a restart of the application is the application's, one that ends with a reset, a reboot or a repair is the hardware's, one
//! that may be ignored changes nothing. What the catalogue leaves open is [`Class::Unknown`].

use std::fmt;

/// An Xid error, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid(pub u64);

/// What an Xid says about who bears the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The tenant's program did it. The device goes on; the tenant is charged on.
    Application,
    /// The hardware did it, and the device is not to be used before it is reset or repaired.
    Hardware,
    /// The hardware did it and coped: the device goes on.
    Survived,
    /// The driver tells something that other readings say better.
    Informative,
    /// Cannot be told from the number.
    Unknown,
}

impl Class {
    /// The word in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Hardware => "hardware",
            Self::Survived => "hardware, survived",
            Self::Informative => "informative",
            Self::Unknown => "unknown",
        }
    }
}

impl Xid {
    /// Its class.
    pub const fn class(self) -> Class {
        self.entry().0
    }

    /// What it means, in words; none for numbers the table leaves out.
    pub fn meaning(self) -> Option<&'static str> {
        Some(self.entry().1).filter(|meaning| !meaning.is_empty())
    }

    const fn entry(self) -> (Class, &'static str) {
        match self.0 {
            8 => (Class::Application, "a channel stopped processing"),
            13 => (Class::Application, "graphics engine exception"),
            31 => (Class::Application, "memory page fault"),
            43 => (Class::Application, "the program's channel was reset"),
            45 => (Class::Application, "the program's work was removed"),
            68 => (Class::Application, "video decoder exception"),
            69 => (Class::Application, "graphics engine class error"),
            46 => (Class::Hardware, "the GPU stopped processing"),
            48 => (Class::Hardware, "uncorrectable memory error"),
            54 => (Class::Hardware, "auxiliary power is not connected"),
            62 => (Class::Hardware, "internal micro-controller halted"),
            64 => (Class::Hardware, "a memory row could not be remapped"),
            74 => (Class::Hardware, "NVLink error"),
            79 => (Class::Hardware, "the GPU fell off the bus"),
            95 => (Class::Hardware, "uncontained memory error"),
            119 => (Class::Hardware, "no answer from the GPU system processor"),
            120 => (Class::Hardware, "error of the GPU system processor"),
            140 => (Class::Hardware, "unrecovered memory error"),
            143 => (Class::Hardware, "the GPU could not be initialised"),
            63 => (Class::Survived, "a memory row was marked for remapping"),
            92 => (Class::Survived, "many correctable memory errors"),
            94 => (Class::Survived, "contained memory error: it ended the programs it touched"),
            154 => (Class::Informative, "the recovery action changed"),
            _ => (Class::Unknown, ""),
        }
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meaning() {
            Some(meaning) => write!(f, "Xid {}: {meaning}", self.0),
            None => write!(f, "Xid {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_catalogue() {
        for (class, numbers) in [
            (Class::Application, &[13, 31, 43, 45, 68, 69][..]),
            (Class::Hardware, &[48, 62, 64, 74, 79, 95, 119, 120]),
            (Class::Survived, &[63, 92, 94]),
            (Class::Informative, &[154]),
            // The catalogue asks for a reset, schedulers count it as the application's: not ours to decide.
            (Class::Unknown, &[0, 32, 109, 999_999]),
        ] {
            for number in numbers {
                assert_eq!(Xid(*number).class(), class, "Xid {number}");
            }
        }
    }

    #[test]
    fn text_names_the_number_and_the_meaning() {
        assert_eq!(Xid(79).to_string(), "Xid 79: the GPU fell off the bus");
        assert_eq!(Xid(777).to_string(), "Xid 777");
    }
}
