//! The shape of a shell program: what the parser makes and the interpreter walks.
//!
//! Text that was quoted and text that was not are kept apart here, so that no later step has to look at quotes again.
//! The source's quoting style is kept only so that `declare -f` can print a function back.

use std::rc::Rc;

/// Commands joined by `;`, `&` or new lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// The commands in order.
    pub items: Vec<ListItem>,
}

/// One `a && b || c`, and whether it runs in the background.
#[derive(Clone, Debug, PartialEq)]
pub struct ListItem {
    /// What runs.
    pub and_or: AndOr,
    /// Ended by `&`.
    pub background: bool,
}

/// Pipelines joined by `&&` and `||`, evaluated left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct AndOr {
    /// The first pipeline.
    pub first: Pipeline,
    /// The rest, each with the operator before it.
    pub rest: Vec<(AndOrOperator, Pipeline)>,
}

/// `&&` or `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AndOrOperator {
    /// Run when the last status was 0.
    And,
    /// Run when it was not.
    Or,
}

/// Commands joined by pipes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// `!` before it (an even number of them cancels out).
    pub negated: bool,
    /// `time` before it.
    pub timed: Option<TimeStyle>,
    /// The commands; empty only for a bare `!` or `time`.
    pub commands: Vec<Command>,
}

/// How `time` reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeStyle {
    /// `time`: by TIMEFORMAT.
    Bash,
    /// `time -p`.
    Posix,
}

/// One command of a pipeline. `a |& b` is `a 2>&1 | b`: the parser appends the redirection.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Assignments, words and redirections.
    Simple(SimpleCommand),
    /// A compound command with redirections on the whole.
    Compound {
        /// What it is.
        body: Compound,
        /// `} > file`.
        redirects: Vec<Redirect>,
        /// Line of its first word, from 1.
        line: u32,
    },
    /// `name() { … }`.
    Function(Rc<Function>),
    /// `coproc NAME command`.
    Coproc {
        /// The array's name; `COPROC` when not given.
        name: String,
        /// What runs.
        body: Box<Command>,
        /// Line of the word `coproc`, from 1.
        line: u32,
    },
}

/// A function definition; shared, since calling one must not copy it.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The body.
    pub body: Compound,
    /// Redirections done at each call.
    pub redirects: Vec<Redirect>,
    /// Line of the definition, from 1.
    pub line: u32,
}

/// `A=1 B=2 word word > file`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimpleCommand {
    /// Assignments before the first word.
    pub assignments: Vec<Assignment>,
    /// The command name and its arguments.
    pub words: Vec<Argument>,
    /// In source order, wherever they stood.
    pub redirects: Vec<Redirect>,
    /// Line of the first token, from 1.
    pub line: u32,
}

/// An argument of a simple command.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An ordinary word.
    Word(Word),
    /// `name=value` after `declare`, `local`, `export`, `readonly`, `typeset` and `alias`-like builtins: not split, may
    /// be an array.
    Assignment(Assignment),
}

/// `name=value`, `name[index]=value`, `name+=value`, `name=(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The subscript between brackets, unexpanded.
    pub index: Option<Word>,
    /// `+=`.
    pub append: bool,
    /// What is assigned.
    pub value: AssignedValue,
}

/// The right-hand side of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub enum AssignedValue {
    /// One word (possibly empty).
    Scalar(Word),
    /// `( … )`.
    Array(Vec<ArrayElement>),
}

/// One element between the parentheses of an array assignment.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayElement {
    /// `[index]=`.
    pub index: Option<Word>,
    /// `[index]+=`.
    pub append: bool,
    /// The value.
    pub value: Word,
}

/// A compound command.
#[derive(Clone, Debug, PartialEq)]
pub enum Compound {
    /// `{ …; }`.
    Group(List),
    /// `( … )`.
    Subshell(List),
    /// `if …; then …; elif …; else …; fi`.
    If {
        /// Each condition with its branch.
        branches: Vec<(List, List)>,
        /// `else`.
        otherwise: Option<List>,
    },
    /// `while …; do …; done`, or `until`.
    While {
        /// `until`: run while the condition fails.
        until: bool,
        /// The condition.
        condition: List,
        /// The loop's body.
        body: List,
    },
    /// `for name in words; do …; done`.
    For {
        /// The variable.
        name: String,
        /// The words; `None` when there is no `in`, which means `"$@"`.
        words: Option<Vec<Word>>,
        /// The loop's body.
        body: List,
    },
    /// `for (( a; b; c )) do …; done`; the three expressions are unexpanded words.
    ArithmeticFor {
        /// Evaluated once before.
        start: Word,
        /// The loop continues while it is not 0; empty means 1.
        condition: Word,
        /// Evaluated after each round.
        step: Word,
        /// The loop's body.
        body: List,
    },
    /// `select name in words; do …; done`.
    Select {
        /// The variable.
        name: String,
        /// The choices; `None` means `"$@"`.
        words: Option<Vec<Word>>,
        /// The body.
        body: List,
    },
    /// `case word in … esac`.
    Case {
        /// What is looked at.
        subject: Word,
        /// The clauses.
        arms: Vec<CaseArm>,
    },
    /// `(( … ))`.
    Arithmetic(Word),
    /// `[[ … ]]`.
    Test(TestExpression),
}

/// One clause of a `case`.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseArm {
    /// Patterns separated by `|`.
    pub patterns: Vec<Word>,
    /// What runs.
    pub body: List,
    /// What ends it.
    pub end: CaseEnd,
}

/// `;;`, `;&` or `;;&`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseEnd {
    /// `;;`: done.
    Break,
    /// `;&`: run the next clause's body.
    FallThrough,
    /// `;;&`: test the next clauses.
    Continue,
}

/// An expression between `[[` and `]]`.
#[derive(Clone, Debug, PartialEq)]
pub enum TestExpression {
    /// A word alone: true when not empty.
    Word(Word),
    /// `-f file` and the like; the operator as written, with its dash.
    Unary(String, Word),
    /// `a = b` and the like; the operator as written.
    Binary(String, Word, Word),
    /// `! e`.
    Not(Box<TestExpression>),
    /// `a && b`.
    And(Box<TestExpression>, Box<TestExpression>),
    /// `a || b`.
    Or(Box<TestExpression>, Box<TestExpression>),
    /// `( e )`; kept for printing.
    Group(Box<TestExpression>),
}

/// A redirection.
#[derive(Clone, Debug, PartialEq)]
pub struct Redirect {
    /// The descriptor it changes.
    pub fd: RedirectFd,
    /// What it does.
    pub kind: RedirectKind,
    /// Line, from 1.
    pub line: u32,
}

/// Which descriptor a redirection changes.
#[derive(Clone, Debug, PartialEq)]
pub enum RedirectFd {
    /// 0 or 1, depending on the operator.
    Default,
    /// `2>`.
    Number(u32),
    /// `{name}>`: a free one of 10 or more, its number put into the variable (a subscript may follow the name).
    Variable(String),
}

/// The kinds of redirection.
#[derive(Clone, Debug, PartialEq)]
pub enum RedirectKind {
    /// `< file`.
    Input(Word),
    /// `> file`; refused by `set -C` when the file exists.
    Output(Word),
    /// `>| file`.
    Clobber(Word),
    /// `>> file`.
    Append(Word),
    /// `<> file`.
    ReadWrite(Word),
    /// `<& word`: the word is a number, a number and `-` (move), or `-` (close).
    DuplicateInput(Word),
    /// `>& word`: as above, or a file name (then as `&>`).
    DuplicateOutput(Word),
    /// `&> file`.
    OutputAndError(Word),
    /// `&>> file`.
    AppendOutputAndError(Word),
    /// `<< END` and `<<- END`: the body, tabs already stripped; of a quoted delimiter it is a single quoted part.
    HereDocument {
        /// The text.
        body: Rc<Word>,
        /// The delimiter as written, for printing.
        delimiter: String,
        /// `<<-`.
        strip_tabs: bool,
    },
    /// `<<< word`.
    HereString(Word),
}

/// A word: text and expansions, side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word {
    /// The pieces. Neighbouring literals are merged.
    pub parts: Vec<Part>,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Unquoted text: brace, tilde and pathname expansion may act on it. Holds no backslashes of the source.
    Literal(String),
    /// Literal text.
    Quoted(String, QuoteStyle),
    /// `" … "`: parts inside are not split or globbed. `locale` for `$" … "`.
    DoubleQuoted {
        /// The text between the quotes.
        parts: Vec<Part>,
        /// `$"`.
        locale: bool,
    },
    /// `$name`, `${…}`.
    Parameter(Box<Parameter>),
    /// `$( … )` and `` ` … ` ``.
    Command(Rc<CommandSubstitution>),
    /// `$(( … ))` and `$[ … ]`: the expression with its own expansions, as inside double quotes.
    Arithmetic(Word),
    /// `<( … )` and `>( … )`.
    Process {
        /// `>(`: the command reads what is written to the path.
        writes: bool,
        /// What runs.
        body: Rc<CommandSubstitution>,
    },
}

/// The quoting of a text in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuoteStyle {
    /// `' … '`.
    Single,
    /// `$' … '`, already decoded.
    AnsiC,
    /// `\c`.
    Backslash,
}

/// A command substitution, with its source text for printing and for line numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandSubstitution {
    /// What runs.
    pub body: List,
    /// The text between the delimiters.
    pub source: String,
    /// Written with backquotes.
    pub backquoted: bool,
    /// The error in a backquoted body, which bash reports when the substitution runs (`bash: command substitution:
    /// line N: …`), and then continues with nothing.
    pub error: Option<Rc<crate::syntax::SyntaxError>>,
}

/// A parameter expansion.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// `${!name}`: expand the variable that this one names.
    pub indirect: bool,
    /// Which parameter.
    pub name: ParameterName,
    /// `[index]`, `[@]`, `[*]`.
    pub index: Option<Index>,
    /// What is done with its value.
    pub operation: Operation,
    /// Written with braces; for printing.
    pub braced: bool,
}

/// The parameter of an expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterName {
    /// A variable.
    Variable(String),
    /// `$1`, `${10}`; never 0.
    Positional(u32),
    /// `$@ $* $# $? $- $$ $! $0`; `$_` is a variable.
    Special(char),
}

/// A subscript.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// `[@]`: each element.
    All,
    /// `[*]`: all as one.
    Joined,
    /// An arithmetic expression, or a key.
    Element(Word),
}

/// The operation of a parameter expansion.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// `${x}`.
    Get,
    /// `${#x}`.
    Length,
    /// `${x:-w}` and `${x-w}`.
    Default {
        /// `:`: also when empty.
        or_empty: bool,
        /// The word.
        word: Word,
    },
    /// `${x:=w}`.
    Assign {
        /// `:`: also when empty.
        or_empty: bool,
        /// The word.
        word: Word,
    },
    /// `${x:?w}`.
    Error {
        /// `:`: also when empty.
        or_empty: bool,
        /// The word.
        word: Word,
    },
    /// `${x:+w}`.
    Alternative {
        /// `:`: only when not empty.
        or_empty: bool,
        /// The word.
        word: Word,
    },
    /// `${x#p}`, `${x##p}`.
    RemovePrefix {
        /// `##`.
        longest: bool,
        /// The pattern.
        pattern: Word,
    },
    /// `${x%p}`, `${x%%p}`.
    RemoveSuffix {
        /// `%%`.
        longest: bool,
        /// The pattern.
        pattern: Word,
    },
    /// `${x/p/r}` and its kin.
    Replace {
        /// Which matches.
        anchor: ReplaceAnchor,
        /// The pattern.
        pattern: Word,
        /// The replacement; `None` when there is no second slash.
        replacement: Option<Word>,
    },
    /// `${x:offset:length}`; both are arithmetic.
    Substring {
        /// From where.
        offset: Word,
        /// How much.
        length: Option<Word>,
    },
    /// `${x^p}`, `${x^^p}`, `${x,p}`, `${x,,p}`, `${x~p}`, `${x~~p}`.
    Case {
        /// What happens to a matching character.
        change: CaseChange,
        /// Doubled operator: every character, not only the first.
        all: bool,
        /// Which characters; empty means any.
        pattern: Word,
    },
    /// `${x@Q}`: the letter (`U u L Q E P A K a k`).
    Transform(char),
    /// `${!prefix*}` and `${!prefix@}` (`separate`).
    Names {
        /// `@`.
        separate: bool,
    },
    /// `${!array[@]}` and `${!array[*]}` (`separate` for `@`).
    Keys {
        /// `@`.
        separate: bool,
    },
    /// A form that bash refuses when it is expanded: `bash: …: bad substitution`. Holds the text between the braces.
    Bad(String),
}

/// Which matches `${x/p/r}` replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceAnchor {
    /// `/`: the first.
    First,
    /// `//`: all.
    All,
    /// `/#`: at the start.
    Start,
    /// `/%`: at the end.
    End,
}

/// The kind of a case modification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseChange {
    /// `^`.
    Upper,
    /// `,`.
    Lower,
    /// `~`.
    Toggle,
}
