//! Assignments in jq's sense: jaq refuses to assign below what is missing, jq makes it.
//!
//! A filter is read by jaq's parser and written out again, fully in parentheses, with every assignment turned into a
//! call of the definitions in `more.jq`.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{Opt, Part};

/// The filter with its assignments rewritten; `None` when there are none or it is not a plain filter.
pub(super) fn assignments(code: &str) -> Option<String> {
    if !code.contains('=') {
        return None;
    }
    let term = jaq_core::load::parse(code, |parser| parser.term())?;
    let mut writer = Writer { out: String::with_capacity(code.len() * 2), changed: false, fresh: 0 };
    writer.term(&term)?;
    writer.changed.then_some(writer.out)
}

struct Writer {
    out: String,
    changed: bool,
    fresh: usize,
}

type Term_<'s> = Term<&'s str>;

impl Writer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn group(&mut self, term: &Term_<'_>) -> Option<()> {
        self.put("(");
        self.term(term)?;
        self.put(")");
        Some(())
    }

    fn list(&mut self, terms: &[Term_<'_>]) -> Option<()> {
        for (index, term) in terms.iter().enumerate() {
            self.put(if index > 0 { "; " } else { "(" });
            self.term(term)?;
        }
        self.put(if terms.is_empty() { "" } else { ")" });
        Some(())
    }

    fn term(&mut self, term: &Term_<'_>) -> Option<()> {
        match term {
            Term::Id => self.put("."),
            Term::Recurse => self.put(".."),
            Term::Num(text) | Term::Var(text) => self.put(text),
            Term::Str(format, parts) => self.string(*format, parts)?,
            Term::Arr(None) => self.put("[]"),
            Term::Arr(Some(inner)) => {
                self.put("[");
                self.term(inner)?;
                self.put("]");
            }
            Term::Obj(pairs) => {
                for (index, (key, value)) in pairs.iter().enumerate() {
                    self.put(if index > 0 { ", " } else { "{" });
                    match (key, value) {
                        (Term::Var(_) | Term::Str(..), None) => self.term(key)?,
                        (key, None) => self.term(key)?,
                        (key, Some(value)) => {
                            self.group(key)?;
                            self.put(": ");
                            self.group(value)?;
                        }
                    }
                }
                self.put(if pairs.is_empty() { "{}" } else { "}" });
            }
            Term::Neg(inner) => {
                self.put("(-");
                self.group(inner)?;
                self.put(")");
            }
            Term::BinOp(left, op, right) => self.binary(left, op, right)?,
            Term::Label(name, inner) => {
                self.put(&format!("(label {name} | "));
                self.term(inner)?;
                self.put(")");
            }
            Term::Break(name) => self.put(&format!("break {name}")),
            Term::Fold(name, source, pattern, parts) => {
                self.put(&format!("({name} "));
                self.group(source)?;
                self.put(" as ");
                self.pattern(pattern)?;
                self.put(" ");
                self.list(parts)?;
                self.put(")");
            }
            Term::TryCatch(inner, catch) => {
                self.put("(try ");
                self.group(inner)?;
                if let Some(catch) = catch {
                    self.put(" catch ");
                    self.group(catch)?;
                }
                self.put(")");
            }
            Term::IfThenElse(branches, otherwise) => {
                for (index, (condition, then)) in branches.iter().enumerate() {
                    self.put(if index > 0 { " elif " } else { "if " });
                    self.term(condition)?;
                    self.put(" then ");
                    self.term(then)?;
                }
                if let Some(otherwise) = otherwise {
                    self.put(" else ");
                    self.term(otherwise)?;
                }
                self.put(" end");
            }
            Term::Def(defs, inner) => {
                self.put("(");
                for def in defs {
                    self.def(def)?;
                }
                self.term(inner)?;
                self.put(")");
            }
            Term::Call(name, args) => {
                self.put(name);
                self.list(args)?;
            }
            Term::Path(inner, path) => {
                self.group(inner)?;
                for (part, opt) in &path.0 {
                    self.put("[");
                    match part {
                        Part::Index(index) => self.term(index)?,
                        Part::Range(None, None) => {}
                        Part::Range(from, to) => {
                            if let Some(from) = from {
                                self.group(from)?;
                            }
                            self.put(":");
                            if let Some(to) = to {
                                self.group(to)?;
                            }
                        }
                    }
                    self.put(if matches!(opt, Opt::Optional) { "]?" } else { "]" });
                }
            }
        }
        Some(())
    }

    fn def(&mut self, def: &Def<&str>) -> Option<()> {
        self.put(&format!("def {}", def.name));
        if !def.args.is_empty() {
            self.put(&format!("({})", def.args.join("; ")));
        }
        self.put(": ");
        self.term(&def.body)?;
        self.put("; ");
        Some(())
    }

    fn string(&mut self, format: Option<&str>, parts: &[StrPart<&str, Term_<'_>>]) -> Option<()> {
        if let Some(format) = format {
            self.put(format);
            self.put(" ");
        }
        self.put("\"");
        for part in parts {
            match part {
                StrPart::Str(text) => self.put(text),
                StrPart::Term(term) => {
                    self.put("\\");
                    self.group(term)?;
                }
                StrPart::Char(char) => {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        self.put(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        self.put("\"");
        Some(())
    }

    fn pattern(&mut self, pattern: &Pattern<&str>) -> Option<()> {
        match pattern {
            Pattern::Var(name) => self.put(name),
            Pattern::Arr(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.put(if index > 0 { ", " } else { "[" });
                    self.pattern(item)?;
                }
                self.put("]");
            }
            Pattern::Obj(pairs) => {
                for (index, (key, item)) in pairs.iter().enumerate() {
                    self.put(if index > 0 { ", " } else { "{" });
                    self.group(key)?;
                    self.put(": ");
                    self.pattern(item)?;
                }
                self.put("}");
            }
        }
        Some(())
    }

    fn binary(&mut self, left: &Term_<'_>, op: &BinaryOp<&str>, right: &Term_<'_>) -> Option<()> {
        let name = match op {
            BinaryOp::Assign => "_assign",
            BinaryOp::Update => "_update",
            BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
                let word = match op {
                    BinaryOp::UpdateMath(math) => math_text(*math),
                    _ => "//",
                };
                self.changed = true;
                self.fresh += 1;
                let variable = format!("$__update{}", self.fresh);
                self.put("(");
                self.group(right)?;
                self.put(&format!(" as {variable} | _update("));
                self.term(left)?;
                self.put(&format!("; . {word} {variable}))"));
                return Some(());
            }
            _ => {
                self.put("(");
                self.group(left)?;
                match op {
                    BinaryOp::Pipe(None) => self.put(" | "),
                    BinaryOp::Pipe(Some(pattern)) => {
                        self.put(" as ");
                        self.pattern(pattern)?;
                        self.put(" | ");
                    }
                    BinaryOp::Comma => self.put(", "),
                    BinaryOp::Alt => self.put(" // "),
                    BinaryOp::Or => self.put(" or "),
                    BinaryOp::And => self.put(" and "),
                    BinaryOp::Math(math) => self.put(&format!(" {} ", math_text(*math))),
                    BinaryOp::Cmp(cmp) => self.put(&format!(" {} ", cmp_text(*cmp))),
                    _ => return None,
                }
                self.group(right)?;
                self.put(")");
                return Some(());
            }
        };
        self.changed = true;
        self.put(name);
        self.put("(");
        self.term(left)?;
        self.put("; ");
        self.term(right)?;
        self.put(")");
        Some(())
    }
}

fn math_text(math: jaq_core::ops::Math) -> &'static str {
    use jaq_core::ops::Math;
    match math {
        Math::Add => "+",
        Math::Sub => "-",
        Math::Mul => "*",
        Math::Div => "/",
        Math::Rem => "%",
    }
}

fn cmp_text(cmp: jaq_core::ops::Cmp) -> &'static str {
    use jaq_core::ops::Cmp;
    match cmp {
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
        Cmp::Eq => "==",
        Cmp::Ne => "!=",
    }
}
