//! Foreign names become ours: accounts become tenants (`kind: Mapping`), gres types and labels become products (`kind: Sku`).

use crate::report::{Reason, Reject};
use crate::table::{Columns, Row, name_of};
use gpuledger_domain::time::Instant;
use std::collections::BTreeMap;

/// Who a foreign account is, from an instant on. Of the rules that match a row at the start of its allocation the most
/// specific counts (most exact fields, then most patterns other than `*`), of equals the one with the latest `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRule {
    /// Which importer it is for: `slurm` or `openb`.
    pub source: String,
    /// Column to pattern; `*` stands for any text. All must match. Columns by their lower-case names, such as `account`, `partition`.
    pub matches: BTreeMap<String, String>,
    /// Who it is.
    pub tenant: String,
    /// For which of the tenant's projects.
    pub project: Option<String>,
    /// From when on; none: always.
    pub from: Option<Instant>,
}

/// Which product a foreign name is. The first rule that matches counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkuRule {
    /// The product's id.
    pub sku: String,
    /// Slurm names of it, such as `gpu:h100`.
    pub gres: Vec<String>,
    /// Labels of it, such as a trace's `gpu_spec`.
    pub labels: Vec<String>,
}

/// The tenant and project of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) tenant: String,
    pub(crate) project: Option<String>,
}

/// Says which rule or column option names a column that the file does not have.
pub(crate) fn check(rules: &[TenantRule], source: &str, columns: &Columns) -> Result<(), String> {
    for rule in rules.iter().filter(|r| r.source == source) {
        if let Some(unknown) = rule.matches.keys().find(|name| !columns.has(name)) {
            return Err(format!(
                "the mapping to tenant {} matches on `{unknown}`, which is no column of this file; it has {}",
                rule.tenant,
                columns.listed()
            ));
        }
    }
    Ok(())
}

/// The owner that the rules name, or none where no rule matches.
pub(crate) fn owner(
    rules: &[TenantRule],
    source: &str,
    row: Row<'_>,
    at: Instant,
) -> Result<Option<Owner>, Reject> {
    let mut best: Option<&TenantRule> = None;
    let mut tie: Option<&TenantRule> = None;
    for rule in rules.iter().filter(|r| r.source == source && matches_row(r, row, at)) {
        match best.map(|b| rank(rule).cmp(&rank(b))) {
            None | Some(std::cmp::Ordering::Greater) => (best, tie) = (Some(rule), None),
            Some(std::cmp::Ordering::Equal) => tie = Some(rule),
            Some(std::cmp::Ordering::Less) => {}
        }
    }
    match (best, tie) {
        (Some(a), Some(b)) if (&a.tenant, &a.project) != (&b.tenant, &b.project) => Err(Reject::new(
            Reason::NoTenant,
            None,
            format!(
                "two mappings fit equally well, to {} and to {}; make one of them more specific",
                a.tenant, b.tenant
            ),
        )),
        (Some(rule), _) => Ok(Some(Owner { tenant: rule.tenant.clone(), project: rule.project.clone() })),
        (None, _) => Ok(None),
    }
}

/// The owner by rules, else by the tenant and project columns.
pub(crate) fn owner_or_column(
    options: &crate::Options,
    source: &str,
    row: Row<'_>,
    at: Instant,
    otherwise: impl FnOnce() -> Result<String, Reject>,
) -> Result<Owner, Reject> {
    let project = match options.project_column.as_deref() {
        Some(name) => row.get(name).map(|text| name_of(name, text).map(str::to_owned)).transpose()?,
        None => None,
    };
    if let Some(mut mapped) = owner(&options.tenants, source, row, at)? {
        mapped.project = mapped.project.or(project);
        return Ok(mapped);
    }
    let tenant = match options.tenant_column.as_deref() {
        Some(name) => column_tenant(row, name)?,
        None => otherwise()?,
    };
    Ok(Owner { tenant, project })
}

/// The tenant as this column has it.
pub(crate) fn column_tenant(row: Row<'_>, name: &str) -> Result<String, Reject> {
    let text = row.get(name).ok_or_else(|| {
        let message = "is empty, so nobody holds the allocation; map the row or choose another tenant column";
        Reject::new(Reason::NoTenant, Some(name), message)
    })?;
    name_of(name, text).map(str::to_owned)
}

fn matches_row(rule: &TenantRule, row: Row<'_>, at: Instant) -> bool {
    rule.from.is_none_or(|from| from <= at)
        && rule.matches.iter().all(|(name, pattern)| glob(pattern, row.get(name).unwrap_or("")))
}

/// Larger is better.
fn rank(rule: &TenantRule) -> (usize, usize, Option<Instant>) {
    let exact = rule.matches.values().filter(|p| !p.contains('*')).count();
    let partial = rule.matches.values().filter(|p| p.contains('*') && p.as_str() != "*").count();
    (exact, partial, rule.from)
}

/// The product of a Slurm gres type; none: a GPU of no named type.
pub(crate) fn sku_of_gres(rules: &[SkuRule], kind: Option<&str>) -> String {
    let name = kind.map_or_else(|| "gpu".to_owned(), |kind| format!("gpu:{kind}"));
    let rule = rules.iter().find(|r| r.gres.contains(&name));
    rule.map_or_else(|| kind.unwrap_or("gpu").to_owned(), |r| r.sku.clone())
}

/// The product that a label names, where a rule knows it.
pub(crate) fn sku_of_label(rules: &[SkuRule], label: &str) -> Option<String> {
    rules.iter().find(|r| r.labels.iter().any(|l| l == label)).map(|r| r.sku.clone())
}

/// Whether `text` fits `pattern`, in which `*` stands for any text, none included.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(matches: &[(&str, &str)], tenant: &str, from: Option<i64>) -> TenantRule {
        TenantRule {
            source: "slurm".to_owned(),
            matches: matches.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            tenant: tenant.to_owned(),
            project: None,
            from: from.map(Instant::from_micros),
        }
    }

    fn tenant(
        rules: &[TenantRule],
        account: &str,
        partition: &str,
        at: i64,
    ) -> Result<Option<String>, Reject> {
        let columns = Columns::new(vec!["account".to_owned(), "partition".to_owned()]).unwrap();
        let fields = [account.to_owned(), partition.to_owned()];
        let owner = owner(rules, "slurm", columns.row(&fields), Instant::from_micros(at))?;
        Ok(owner.map(|o| o.tenant))
    }

    #[test]
    fn globs() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "x"),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a*c", "ac"),
            ("a*b*c", "a1b2c"),
            ("abc", "abc"),
        ] {
            assert!(glob(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "x"), ("a", "ab"), ("a*", "ba"), ("a*b*c", "acb"), ("ab*ba", "aba"), ("*.x", "x")]
        {
            assert!(!glob(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn the_most_specific_rule_counts_then_the_latest() {
        let rules = [
            rule(&[("account", "*")], "any", Some(50)),
            rule(&[("account", "rob*")], "pattern", None),
            rule(&[("account", "robotics"), ("partition", "*")], "old", None),
            rule(&[("account", "robotics"), ("partition", "*")], "new", Some(10)),
            rule(&[("account", "robotics"), ("partition", "a100")], "exact", None),
        ];
        assert_eq!(tenant(&rules, "robotics", "a100", 0), Ok(Some("exact".to_owned())));
        assert_eq!(tenant(&rules, "robotics", "x", 9), Ok(Some("old".to_owned())));
        assert_eq!(tenant(&rules, "robotics", "x", 10), Ok(Some("new".to_owned())));
        assert_eq!(tenant(&rules, "robin", "x", 10), Ok(Some("pattern".to_owned())));
        assert_eq!(tenant(&rules, "chem", "x", 50), Ok(Some("any".to_owned())));
        assert_eq!(tenant(&rules, "chem", "x", 49), Ok(None));
    }

    #[test]
    fn two_equal_rules_are_refused_unless_they_agree() {
        let a = rule(&[("account", "x")], "a", None);
        let b = rule(&[("partition", "p")], "b", None);
        let refused = tenant(&[a.clone(), b], "x", "p", 0).unwrap_err();
        assert_eq!(refused.reason, Reason::NoTenant);
        assert_eq!(tenant(&[a.clone(), a], "x", "p", 0), Ok(Some("a".to_owned())));
    }

    #[test]
    fn a_rule_on_a_column_the_file_lacks_is_an_error() {
        let columns = Columns::new(vec!["account".to_owned()]).unwrap();
        let message = check(&[rule(&[("wckey", "x")], "a", None)], "slurm", &columns).unwrap_err();
        assert!(message.contains("`wckey`"), "{message}");
        assert_eq!(check(&[rule(&[("wckey", "x")], "a", None)], "openb", &columns), Ok(()));
    }

    #[test]
    fn products_by_gres_and_by_label() {
        let rules = [SkuRule {
            sku: "h100-80gb-hbm3".to_owned(),
            gres: vec!["gpu:h100".to_owned()],
            labels: vec!["H100".to_owned()],
        }];
        assert_eq!(sku_of_gres(&rules, Some("h100")), "h100-80gb-hbm3");
        assert_eq!(sku_of_gres(&rules, Some("tesla")), "tesla");
        assert_eq!(sku_of_gres(&rules, None), "gpu");
        assert_eq!(sku_of_label(&rules, "H100").as_deref(), Some("h100-80gb-hbm3"));
        assert_eq!(sku_of_label(&rules, "T4"), None);
    }
}
