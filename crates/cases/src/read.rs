//! From the text of a file to its cases.

use super::event::Speaker;
use super::expect::Expect;
use super::object::{PoolLine, TenantLine, date};
use super::times::{DATE, instant};
use super::{Case, Step};
use std::fmt;

/// Something in a file that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    place: String,
    problem: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for Trouble {}

/// Reads the cases of one file.
///
/// # Errors
/// Every line that is not understood, and every case that is not whole.
pub fn read(file: &str, text: &str) -> Result<Vec<Case>, Vec<Trouble>> {
    let mut reader = Reader {
        cases: Vec::new(),
        speaker: Speaker::default(),
        date: DATE.to_owned(),
        section: Section::None,
    };
    let mut troubles = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{file}:{}", index + 1);
        if let Err(problem) = reader.line(line, index + 1, &place) {
            troubles.push(Trouble { place, problem });
        }
    }
    for case in &reader.cases {
        troubles.extend(incomplete(case).map(|problem| Trouble { place: case.place.clone(), problem }));
    }
    if troubles.is_empty() { Ok(reader.cases) } else { Err(troubles) }
}

fn incomplete(case: &Case) -> Option<String> {
    let problem = if case.rules.is_empty() {
        "names no rule"
    } else if case.expects().is_empty() && !case.steps.iter().any(|(_, step)| matches!(step, Step::Do { .. }))
    {
        "expects nothing"
    } else if !case.on_database && case.horizon().is_none() {
        "needs one horizon"
    } else if !case.on_database && case.steps.iter().any(|(_, step)| !is_pure(step)) {
        "needs the program: say `database`"
    } else {
        return None;
    };
    Some(format!("the case {} {problem}", case.name))
}

/// Whether the rules alone answer it.
fn is_pure(step: &Step) -> bool {
    match step {
        Step::Said(_) | Step::Horizon(_) => true,
        Step::Expect(expect) => {
            matches!(expect, Expect::Balance { .. } | Expect::Usage { .. } | Expect::Findings { .. })
        }
        Step::Clock(_) | Step::Apply { .. } | Step::Do { .. } => false,
    }
}

/// What the rows that are indented further belong to.
enum Section {
    None,
    Expect,
    Objects,
}

struct Reader {
    cases: Vec<Case>,
    speaker: Speaker,
    date: String,
    section: Section,
}

impl Reader {
    fn line(&mut self, line: &str, number: usize, place: &str) -> Result<(), String> {
        let line = without_comment(line);
        let told = line.trim_start();
        if told.is_empty() {
            return Ok(());
        }
        match line.len() - told.len() {
            0 => self.begin(told, place),
            2 => self.statement(told, number),
            _ => self.row(line, told),
        }
    }

    fn begin(&mut self, told: &str, place: &str) -> Result<(), String> {
        let head = told.strip_prefix("case ").ok_or("expected `case NAME: TITLE`, or an indented line")?;
        let (name, title) = head.split_once(':').ok_or("expected `case NAME: TITLE`")?;
        self.speaker = Speaker::default();
        self.date = DATE.to_owned();
        self.section = Section::None;
        self.cases.push(Case {
            place: place.to_owned(),
            name: name.trim().to_owned(),
            title: title.trim().to_owned(),
            rules: Vec::new(),
            shows: Vec::new(),
            on_database: false,
            fixed: false,
            tenants: Vec::new(),
            pools: Vec::new(),
            steps: Vec::new(),
        });
        Ok(())
    }

    fn statement(&mut self, told: &str, number: usize) -> Result<(), String> {
        self.section = Section::None;
        let (first, rest) = told.split_once(' ').unwrap_or((told, ""));
        let words = || rest.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        let date_here = self.date.clone();
        let case = self.cases.last_mut().ok_or("no case has begun")?;
        let mut step = |step| case.steps.push((number, step));
        match first {
            "rules" => case.rules = words(),
            "shows" => case.shows = words(),
            "database" => case.on_database = true,
            "fixed" => case.fixed = true,
            "on" => self.date = date(rest.trim())?,
            "tenant" => case.tenants.push(TenantLine::read(rest)?),
            "pool" => case.pools.push(PoolLine::read(rest)?),
            "objects" => {
                let exit = if rest.trim() == "refused" { 2 } else { 0 };
                step(Step::Apply { yaml: String::new(), exit });
                self.section = Section::Objects;
            }
            "clock" => step(Step::Clock(instant(rest.trim(), &date_here)?.at)),
            "horizon" => step(Step::Horizon(instant(rest.trim(), &date_here)?.at)),
            "do" => step(Step::Do { words: words(), exit: 0 }),
            "refuse" => step(Step::Do { words: words(), exit: 1 }),
            "balance" | "usage" | "findings" | "parked" | "invoice" => {
                step(Step::Expect(Expect::head(told, &date_here)?));
                self.section = Section::Expect;
            }
            _ => {
                for said in self.speaker.read(told, &date_here)? {
                    case.steps.push((number, Step::Said(Box::new(said))));
                }
            }
        }
        Ok(())
    }

    fn row(&mut self, line: &str, told: &str) -> Result<(), String> {
        let case = self.cases.last_mut().ok_or("no case has begun")?;
        match self.section {
            Section::None => Err("is indented, but belongs to no section".to_owned()),
            Section::Objects => match case.steps.last_mut() {
                Some((_, Step::Apply { yaml, .. })) => {
                    yaml.push_str(line.strip_prefix("    ").unwrap_or(told));
                    yaml.push('\n');
                    Ok(())
                }
                _ => Err("belongs to no section".to_owned()),
            },
            Section::Expect => match case.steps.last_mut() {
                Some((_, Step::Expect(expect))) => expect.row(told, &self.date),
                _ => Err("belongs to no section".to_owned()),
            },
        }
    }
}

/// A comment begins with `#` at the start of the line or after a blank.
fn without_comment(line: &str) -> &str {
    let cut = if line.trim_start().starts_with('#') { Some(0) } else { line.find(" #") };
    cut.map_or(line, |at| &line[..at]).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "case a-1: a title\n  rules A-1\n  10:00 n1: inventory G1 h100\n  horizon 10:30\n  balance\n    G1 idle 7c8m x 00:30:00\n";

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert_eq!(read("t.txt", WHOLE).unwrap().len(), 1);
        let said =
            |text: &str| read("t.txt", text).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(
            said(&WHOLE.replace("inventory", "inventry"))[0].starts_with("t.txt:3: `inventry` says nothing")
        );
        assert!(said(&WHOLE.replace("7c8m", "78m"))[0].starts_with("t.txt:6: "));
        assert_eq!(
            said(&WHOLE.replace("  horizon 10:30\n", "")),
            ["t.txt:1: the case a-1 needs one horizon"]
        );
        assert_eq!(said(&WHOLE.replace("  rules A-1\n", "")), ["t.txt:1: the case a-1 names no rule"]);
        assert!(said(&WHOLE.replace("10:00 n1:", "10:00 n1"))[0].contains("is nobody"));
    }
}
