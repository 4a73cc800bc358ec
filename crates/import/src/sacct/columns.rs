//! Columns and fields of a dump.

use crate::Options;
use crate::table::Columns;

/// The columns of Open `XDMoD`'s dumps, `sacct --parsable2 --noheader` with its format.
const DEFAULT: &str = "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end elapsed exitcode state \
     nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname";
/// The one column in which Slurm lets a user write the separator.
const FREE_TEXT: &str = "jobname";

/// How the lines of a dump are laid out.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) columns: Columns,
    /// Whether the first line names the columns.
    pub(super) has_header: bool,
    /// Whether every line ends with the separator, as `sacct --parsable` has it.
    closed: bool,
}

/// The layout that the first line or the options give.
pub(super) fn of_first_line(first: &str, options: &Options) -> Result<Layout, String> {
    let mut names: Vec<String> = first.split('|').map(|n| n.trim().to_lowercase()).collect();
    let has_header = names.iter().any(|n| n == "jobid" || n == "jobidraw");
    if !has_header {
        names = match &options.columns {
            Some(names) => names.iter().map(|n| n.trim().to_lowercase()).collect(),
            None => DEFAULT.split_whitespace().map(str::to_owned).collect(),
        };
    }
    let mut closed = first.ends_with('|');
    if has_header {
        names.pop_if(|name| closed && name.is_empty());
    } else {
        // Without a header the last field may just be empty.
        closed &= first.matches('|').count() == names.len();
    }
    let columns = Columns::new(names)?;
    check(&columns, options)?;
    Ok(Layout { columns, has_header, closed })
}

fn check(columns: &Columns, options: &Options) -> Result<(), String> {
    let mut needed = vec!["start", "end", "state", "alloctres"];
    if !columns.has("jobid") {
        needed.push("jobidraw");
    }
    needed.push(options.tenant_column.as_deref().unwrap_or("account"));
    needed.extend(options.project_column.as_deref());
    let missing: Vec<&str> = needed.into_iter().filter(|name| !columns.has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let found = columns.listed();
    Err(format!(
        "the columns lack {}; the dump has {found}; give them as sacct --format=JobID,…",
        missing.join(", ")
    ))
}

impl Layout {
    /// The fields of a line. A job name may hold the separator: fields beyond the columns are the name's.
    pub(super) fn fields(&self, line: &str) -> Vec<String> {
        let mut fields: Vec<String> = line.split('|').map(str::to_owned).collect();
        if self.closed {
            fields.pop_if(|last| last.is_empty());
        }
        let wanted = self.columns.len();
        if let Some(name) = self.columns.place(FREE_TEXT)
            && fields.len() > wanted
        {
            let end = name + fields.len() - wanted;
            let joined = fields[name..=end].join("|");
            fields.splice(name..=end, [joined]);
        }
        fields
    }
}
