//! Usage that changed after its period was closed. This version bills no adjustments, so a close names what they would be for:
//! nothing is lost in silence.

use crate::document::Document;
use crate::error::BillingError;
use crate::text::{microseconds, seconds};
use gpuledger_domain::rating::{Period, Priced};
use std::fmt;

/// A closed period whose usage is not what its document says any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Whose.
    pub tenant: String,
    /// Which.
    pub period: Period,
    /// What its document says, in unit-microseconds.
    pub billed_us: i128,
    /// What the facts say now.
    pub now_us: i128,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "usage of {} in {} is {} s now and {} s on its document; this version bills no adjustments (a draft can be discarded and closed again)",
            self.tenant,
            self.period,
            seconds(self.now_us),
            seconds(self.billed_us)
        )
    }
}

/// Unit-microseconds on a document, those without a price included; none on no document.
pub(crate) fn billed_us(document: Option<&Document>) -> Result<i128, BillingError> {
    let Some(document) = document else { return Ok(0) };
    let lines = document.lines.iter().map(|line| &line.quantity);
    let quantities = lines.chain(document.unpriced.iter().map(|unpriced| &unpriced.quantity));
    let mut sum = 0;
    for text in quantities {
        sum += microseconds(text).ok_or_else(|| BillingError::Member {
            id: document.id.clone(),
            member: "quantity",
            text: text.clone(),
        })?;
    }
    Ok(sum)
}

/// Unit-microseconds of priced usage, those without a price included.
pub(crate) fn priced_us(priced: &Priced<'_>) -> i128 {
    let charged: i128 = priced.charges.iter().map(|charge| charge.quantity_us).sum();
    charged + priced.unpriced.iter().map(|unpriced| unpriced.quantity_us).sum::<i128>()
}
