//! What came late for a closed period, and where it is billed.

use crate::draft::Correction;
use gpuledger_domain::money::{Money, MoneyError};
use gpuledger_domain::rating::Period;
use std::fmt;

/// A closed period that comes to something else from all facts now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Whose.
    pub tenant: String,
    /// Which.
    pub period: Period,
    /// How many of its lines change.
    pub lines: usize,
    /// By how much in all, net.
    pub amount: Money,
    /// The document that says so; none while no open period was closed since.
    pub booked: Option<String>,
}

impl Late {
    /// What a correction comes to.
    ///
    /// # Errors
    /// The sum passes 128 bits.
    pub(crate) fn of(
        tenant: &str,
        correction: &Correction,
        nothing: Money,
        booked: Option<String>,
    ) -> Result<Self, MoneyError> {
        let amounts = correction.adjustments.iter().map(|one| one.line.amount);
        Ok(Self {
            tenant: tenant.to_owned(),
            period: correction.period,
            lines: correction.adjustments.len(),
            amount: Money::sum(nothing.currency(), amounts)?,
            booked,
        })
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tenant, period, lines, amount, booked } = self;
        let lines = if *lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        write!(
            f,
            "{tenant}: facts came late for {period}: {lines}, {amount} {}, ",
            amount.currency().code()
        )?;
        match booked {
            Some(document) => write!(f, "adjusted in {document}"),
            None => f.write_str("to be adjusted when the next period is closed"),
        }
    }
}
