//! From a closed month to bills one can open.

use super::folder::Folder;
use super::screen::Screen;
use crate::table;
use anyhow::Result;
use gpuledger_billing::document::Document;
use gpuledger_billing::render::{html, table as bill_table};
use gpuledger_billing::{Issue, Refused, close_period, explain, issue, list};
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::Instant;
use gpuledger_storage::Db;
use gpuledger_wire::amount::parse_decimal;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Bills of a table before it is cut.
const MOST_ROWS: usize = 10;

/// What closing and issuing came to.
#[derive(Debug, Default)]
pub(crate) struct Bills {
    /// All documents, issued or not; the largest first where they are in one currency, else by period and tenant.
    documents: Vec<Document>,
    /// The page of each.
    pages: Vec<PathBuf>,
    /// What was not closed, with why.
    refused: Vec<Refused>,
}

impl Bills {
    /// Closes the months, issues what can be issued and writes a page for each document.
    ///
    /// # Errors
    /// The database, or a page that cannot be written.
    pub(crate) async fn make(db: &Db, months: &[Period], now: Instant, folder: &Folder) -> Result<Self> {
        let mut bills = Self::default();
        for month in months {
            let report = close_period(db, *month, None, now, false).await?;
            bills.refused.extend(report.refused);
        }
        if !list(db, None, None).await?.is_empty() {
            // A draft that is not issued has usage without a price, which is said once for all of them.
            issue(db, Issue::All { period: None }, now).await?;
        }
        bills.documents = list(db, None, None).await?;
        let currencies: BTreeSet<&str> =
            bills.documents.iter().map(|document| document.currency.as_str()).collect();
        if currencies.len() == 1 {
            bills
                .documents
                .sort_by_key(|document| Reverse(parse_decimal(&document.total).unwrap_or_default()));
        }
        for document in &bills.documents {
            let name = document.number.as_ref().unwrap_or(&document.id);
            bills.pages.push(folder.write(&format!("bills/{}.html", file_name(name)), &html(document)?)?);
        }
        Ok(bills)
    }

    /// How many documents there are.
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    /// How many of them are issued.
    pub(crate) fn issued(&self) -> usize {
        self.documents.iter().filter(|document| document.status == "issued").count()
    }

    /// The bill to look at first: the tenant's, else the largest.
    pub(crate) fn first(&self, tenant: Option<&str>) -> Option<(&Document, &PathBuf)> {
        let mut both = self.documents.iter().zip(&self.pages);
        let own = tenant.and_then(|tenant| both.clone().find(|(document, _)| document.tenant == tenant));
        own.or_else(|| both.next())
    }

    /// Prints the bills, and what stands in the way of others.
    pub(crate) fn print(&self, screen: Screen) {
        screen.heading("Bills", "");
        if self.documents.is_empty() {
            screen.line("none: no month with usage is over");
        } else {
            let rows: Vec<Vec<String>> = self.documents.iter().take(MOST_ROWS).map(cells).collect();
            let headings = ["number", "tenant", "period", "net", "tax", "total", "", "status"];
            screen.line(&table::render(&headings, &["net", "tax", "total"], &rows));
            if self.len() > MOST_ROWS {
                screen.note(&format!("… and {} more; every one has its page", self.len() - MOST_ROWS));
            }
        }
        let unpriced = self.unpriced();
        if !unpriced.is_empty() {
            let flags: Vec<String> = unpriced.iter().map(|sku| format!("--price '{sku}=2.40'")).collect();
            let (first, more) = (flags.iter().take(MOST_ROWS), flags.len().saturating_sub(MOST_ROWS));
            let more = if more > 0 { format!(" … and {more} more") } else { String::new() };
            let first: Vec<&str> = first.map(String::as_str).collect();
            screen.verdict(false, &format!("no price, so no number: say {}{more}", first.join(" ")));
        }
        for refused in self.refused.iter().take(3) {
            screen.verdict(false, &format!("{}: {}", refused.tenant, refused.reason));
        }
        if self.refused.len() > 3 {
            screen.note(&format!("… and {} more like these", self.refused.len() - 3));
        }
    }

    /// SKUs that were used and have no price.
    fn unpriced(&self) -> BTreeSet<&str> {
        self.documents
            .iter()
            .flat_map(|document| &document.unpriced)
            .map(|usage| usage.sku.as_str())
            .collect()
    }

    /// Prints one bill, if there is one, and why its largest line is what it is.
    ///
    /// # Errors
    /// The database.
    pub(crate) async fn print_one(&self, screen: Screen, db: &Db, tenant: Option<&str>) -> Result<()> {
        let Some((document, _)) = self.first(tenant) else { return Ok(()) };
        screen.heading("One of them", "");
        screen.line(bill_table(document).trim_end());
        let largest =
            document.lines.iter().max_by_key(|line| parse_decimal(&line.amount).unwrap_or_default());
        if let Some(line) = largest {
            screen.heading("Why its largest line is what it is", &format!("gpuledger why {}", line.id));
            screen.lines(explain(db, &line.id).await?.text().trim_end());
        }
        Ok(())
    }
}

fn cells(document: &Document) -> Vec<String> {
    let taxes: Vec<&str> = document.taxes.iter().map(|tax| tax.amount.as_str()).collect();
    let tax = if taxes.is_empty() { "–".to_owned() } else { taxes.join(" + ") };
    vec![
        document.number.clone().unwrap_or_else(|| "–".to_owned()),
        document.tenant.clone(),
        document.period.clone(),
        document.subtotal.clone(),
        tax,
        document.total.clone(),
        document.currency.clone(),
        document.status.clone(),
    ]
}

/// A name as it can stand in a folder: tenants may be called anything.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    name.chars().take(100).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_stay_in_their_folder() {
        assert_eq!(file_name("GC-2026-0001"), "GC-2026-0001");
        assert_eq!(file_name("inv-2026-10-a/../b c-1"), "inv-2026-10-a_.._b_c-1");
    }
}
