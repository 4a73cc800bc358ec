//! Tests of the whole: they live in `it/` and in `accept/`; this library is empty because a package needs a target.
