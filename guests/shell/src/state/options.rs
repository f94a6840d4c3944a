//! The switches of `set` and `shopt`.

macro_rules! switches {
    ($(#[$doc:meta])* $type:ident: $($name:ident = $text:literal, $letter:literal, $on:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is named as bash names it")]
        pub enum $type { $($name),* }

        impl $type {
            /// All of them, in the order in which bash lists them.
            pub const ALL: &'static [(Self, &'static str, char, bool)] = &[$((Self::$name, $text, $letter, $on)),*];
        }
    };
}

switches! {
    /// What `set -o` switches.
    SetOption:
    AllExport = "allexport", 'a', false;
    BraceExpand = "braceexpand", 'B', true;
    Emacs = "emacs", ' ', false;
    ErrExit = "errexit", 'e', false;
    ErrTrace = "errtrace", 'E', false;
    FuncTrace = "functrace", 'T', false;
    HashAll = "hashall", 'h', true;
    HistExpand = "histexpand", 'H', false;
    History = "history", ' ', false;
    IgnoreEof = "ignoreeof", ' ', false;
    InteractiveComments = "interactive-comments", ' ', true;
    Keyword = "keyword", 'k', false;
    Monitor = "monitor", 'm', false;
    NoClobber = "noclobber", 'C', false;
    NoExec = "noexec", 'n', false;
    NoGlob = "noglob", 'f', false;
    NoLog = "nolog", ' ', false;
    Notify = "notify", 'b', false;
    NoUnset = "nounset", 'u', false;
    OneCmd = "onecmd", 't', false;
    Physical = "physical", 'P', false;
    PipeFail = "pipefail", ' ', false;
    Posix = "posix", ' ', false;
    Privileged = "privileged", 'p', false;
    Verbose = "verbose", 'v', false;
    Vi = "vi", ' ', false;
    XTrace = "xtrace", 'x', false;
}

switches! {
    /// What `shopt` switches.
    ShoptOption:
    AutoCd = "autocd", ' ', false;
    AssocExpandOnce = "assoc_expand_once", ' ', false;
    CdableVars = "cdable_vars", ' ', false;
    CdSpell = "cdspell", ' ', false;
    CheckHash = "checkhash", ' ', false;
    CheckJobs = "checkjobs", ' ', false;
    CheckWinSize = "checkwinsize", ' ', true;
    CmdHist = "cmdhist", ' ', true;
    Compat31 = "compat31", ' ', false;
    Compat32 = "compat32", ' ', false;
    Compat40 = "compat40", ' ', false;
    Compat41 = "compat41", ' ', false;
    Compat42 = "compat42", ' ', false;
    Compat43 = "compat43", ' ', false;
    Compat44 = "compat44", ' ', false;
    CompleteFullQuote = "complete_fullquote", ' ', true;
    DirExpand = "direxpand", ' ', false;
    DirSpell = "dirspell", ' ', false;
    DotGlob = "dotglob", ' ', false;
    ExecFail = "execfail", ' ', false;
    ExpandAliases = "expand_aliases", ' ', false;
    ExtDebug = "extdebug", ' ', false;
    ExtGlob = "extglob", ' ', false;
    ExtQuote = "extquote", ' ', true;
    FailGlob = "failglob", ' ', false;
    ForceFignore = "force_fignore", ' ', true;
    GlobAsciiRanges = "globasciiranges", ' ', true;
    GlobSkipDots = "globskipdots", ' ', true;
    GlobStar = "globstar", ' ', false;
    GnuErrFmt = "gnu_errfmt", ' ', false;
    HistAppend = "histappend", ' ', false;
    HistReEdit = "histreedit", ' ', false;
    HistVerify = "histverify", ' ', false;
    HostComplete = "hostcomplete", ' ', true;
    HupOnExit = "huponexit", ' ', false;
    InheritErrExit = "inherit_errexit", ' ', false;
    InteractiveComments = "interactive_comments", ' ', true;
    LastPipe = "lastpipe", ' ', false;
    LitHist = "lithist", ' ', false;
    LocalVarInherit = "localvar_inherit", ' ', false;
    LocalVarUnset = "localvar_unset", ' ', false;
    LoginShell = "login_shell", ' ', false;
    MailWarn = "mailwarn", ' ', false;
    NoEmptyCmdCompletion = "no_empty_cmd_completion", ' ', false;
    NoCaseGlob = "nocaseglob", ' ', false;
    NoCaseMatch = "nocasematch", ' ', false;
    NoExpandTranslation = "noexpand_translation", ' ', false;
    NullGlob = "nullglob", ' ', false;
    PatSubReplacement = "patsub_replacement", ' ', true;
    ProgComp = "progcomp", ' ', true;
    ProgCompAlias = "progcomp_alias", ' ', false;
    PromptVars = "promptvars", ' ', true;
    RestrictedShell = "restricted_shell", ' ', false;
    ShiftVerbose = "shift_verbose", ' ', false;
    SourcePath = "sourcepath", ' ', true;
    VarRedirClose = "varredir_close", ' ', false;
    XpgEcho = "xpg_echo", ' ', false;
}

/// Which switches are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    set: u32,
    shopt: u64,
}

impl Default for Options {
    fn default() -> Self {
        let mut options = Self { set: 0, shopt: 0 };
        for &(option, _, _, on) in SetOption::ALL {
            options.set(option, on);
        }
        for &(option, _, _, on) in ShoptOption::ALL {
            options.set_shopt(option, on);
        }
        options
    }
}

impl Options {
    /// Returns whether a `set` switch is on.
    #[must_use]
    pub fn on(&self, option: SetOption) -> bool {
        self.set >> option as u32 & 1 == 1
    }

    /// Returns whether a `shopt` switch is on.
    #[must_use]
    pub fn shopt(&self, option: ShoptOption) -> bool {
        self.shopt >> option as u32 & 1 == 1
    }

    /// Switches one of `set`.
    pub fn set(&mut self, option: SetOption, on: bool) {
        let bit = 1 << option as u32;
        self.set = if on { self.set | bit } else { self.set & !bit };
    }

    /// Switches one of `shopt`.
    pub fn set_shopt(&mut self, option: ShoptOption, on: bool) {
        let bit = 1 << option as u32;
        self.shopt = if on { self.shopt | bit } else { self.shopt & !bit };
    }

    /// Returns the value of `$-`, without the letters that say how the shell was started.
    #[must_use]
    pub fn letters(&self) -> String {
        const ORDER: &str = "abefhkmnptuvxBCEHPT";
        ORDER
            .chars()
            .filter(|letter| SetOption::ALL.iter().any(|&(option, _, own, _)| own == *letter && self.on(option)))
            .collect()
    }
}

impl SetOption {
    /// Returns the option with this long name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, text, _, _)| *text == name).map(|entry| entry.0)
    }

    /// Returns the option with this letter.
    #[must_use]
    pub fn lettered(letter: char) -> Option<Self> {
        Self::ALL.iter().find(|(_, _, own, _)| *own == letter && letter != ' ').map(|entry| entry.0)
    }
}

impl ShoptOption {
    /// Returns the option with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, text, _, _)| *text == name).map(|entry| entry.0)
    }
}
