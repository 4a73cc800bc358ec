//! Windows: half-open pieces of UTC, ten seconds long by default and always cut at minutes, in which readings are told.
//!
//! A lane (one GPU) puts what it integrated into its [`Book`]; closed windows leave it as [`Part`]s; [`NodeWindows`] puts the parts of
//! all lanes together into one [`ClosedWindow`] a node. The spool gives that its place in the stream.

mod book;
mod frame;
mod node;
mod part;
mod subject;

pub use book::Book;
pub use frame::Frame;
pub use node::{ClosedWindow, NodeWindows};
pub use part::Part;
pub use subject::{Measure, ProcessKey, Span, Subject, UnitKey};
