"""The sqlite3 command line, as SQLite's own 3.40 behaves: options, dot commands, output modes, messages, statuses."""
import os
import re
import sqlite3
import subprocess
import sys
import time

VERSION = "3.40.1 2022-12-28 14:03:47 df5c253c0b3dd24916e4ec7cf77d3db5294cc9fd45ae7b9c5e82ad8197f3alt1"
MODES = "ascii box column csv html insert json line list markdown qbox quote table tabs tcl".split()
TABULAR = {"column", "box", "table", "markdown", "qbox"}

HELP = """Usage: sqlite3 [OPTIONS] FILENAME [SQL]
FILENAME is the name of an SQLite database. A new database is created
if the file does not previously exist.
OPTIONS include:
   -ascii               set output mode to 'ascii'
   -bail                stop after hitting an error
   -batch               force batch I/O
   -box                 set output mode to 'box'
   -column              set output mode to 'column'
   -cmd COMMAND         run "COMMAND" before reading stdin
   -csv                 set output mode to 'csv'
   -echo                print inputs before execution
   -init FILENAME       read/process named file
   -[no]header          turn headers on or off
   -help                show this message
   -html                set output mode to HTML
   -json                set output mode to 'json'
   -line                set output mode to 'line'
   -list                set output mode to 'list'
   -markdown            set output mode to 'markdown'
   -newline SEP         set output row separator. Default: '\\n'
   -nullvalue TEXT      set text string for NULL values. Default ''
   -quote               set output mode to 'quote'
   -readonly            open the database read-only
   -separator SEP       set output column separator. Default: '|'
   -table               set output mode to 'table'
   -tabs                set output mode to 'tabs'
   -version             show SQLite version
"""

DOT_HELP = """.backup ?DB? FILE        Backup DB (default "main") to FILE
.bail on|off             Stop after hitting an error.  Default OFF
.cd DIRECTORY            Change the working directory to DIRECTORY
.changes on|off          Show number of rows changed by SQL
.databases               List names and files of attached databases
.dump ?OBJECTS?          Render database content as SQL
.echo on|off             Turn command echo on or off
.exit ?CODE?             Exit this program with return-code CODE
.headers on|off          Turn display of headers on or off
.help ?-all? ?PATTERN?   Show help text for PATTERN
.import FILE TABLE       Import data from FILE into TABLE
.indexes ?TABLE?         Show names of indexes
.mode MODE ?OPTIONS?     Set output mode
.nullvalue STRING        Use STRING in place of NULL values
.once ?OPTIONS? ?FILE?   Output for the next SQL command only to FILE
.open ?OPTIONS? ?FILE?   Close existing database and reopen FILE
.output ?FILE?           Send output to FILE or stdout if FILE is omitted
.parameter CMD ...       Manage SQL parameter bindings
.print STRING...         Print literal STRING
.quit                    Exit this program
.read FILE               Read input from FILE or command output
.restore ?DB? FILE       Restore content of DB (default "main") from FILE
.save ?OPTIONS? FILE     Write database to FILE (an alias for .backup ...)
.schema ?PATTERN?        Show the CREATE statements matching PATTERN
.separator COL ?ROW?     Change the column and row separators
.shell CMD ARGS...       Run CMD ARGS... in a system shell
.show                    Show the current values for various settings
.system CMD ARGS...      Run CMD ARGS... in a system shell
.tables ?TABLE?          List names of tables matching LIKE pattern TABLE
.timer on|off            Turn SQL timer on or off
.version                 Show source, library and compiler versions
.width NUM1 NUM2 ...     Set minimum column widths for columnar output
"""


def encode(text):
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def real(value, digits):
    """A number as `%!.15g` prints it: always with a point."""
    if value != value:
        return ""
    if value in (float("inf"), float("-inf")):
        return "Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0.0"
    # SQLite's own digits beyond the seventeenth are exact only for numbers of ordinary size.
    text = format(value, f".{digits}g") if digits < 17 or 1e-15 < abs(value) < 1e17 else repr(value)
    mantissa, mark, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return mantissa + mark + exponent


def plain(value):
    """A value as text, in bytes; text ends at a NUL as it does in C."""
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return real(value, 15).encode()
    return encode(value).split(b"\0")[0]


def literal(value, newlines=False):
    """A value as SQL."""
    if value is None:
        return b"NULL"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        text = real(value, 20)
        return {"Inf": b"1e999", "-Inf": b"-1e999"}.get(text, text.encode())
    if isinstance(value, bytes):
        return b"X'" + value.hex().encode() + b"'"
    text = b"'" + encode(value).replace(b"'", b"''") + b"'"
    if newlines:
        for byte, letter, code in ((b"\n", b"\\n", b"10"), (b"\r", b"\\r", b"13")):
            if byte in text:
                mark = letter
                while mark in text:
                    mark = b"(" + mark + b")"
                text = b"replace(" + text.replace(byte, mark) + b",'" + mark + b"',char(" + code + b"))"
    return text


def name_literal(name):
    """A name as SQL: quoted only when it must be."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


KEYWORDS = set(
    """ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CHECK COLLATE COMMIT CONSTRAINT CREATE DEFAULT DEFERRABLE DELETE
    DISTINCT DROP ELSE ESCAPE EXISTS FOREIGN FROM GROUP HAVING IN INDEX INSERT INTO IS ISNULL JOIN LIMIT NOT NOTNULL NULL ON OR
    ORDER PRIMARY REFERENCES SELECT SET TABLE THEN TO TRANSACTION UNION UNIQUE UPDATE USING VALUES WHEN WHERE""".split()
)


def json_text(value):
    if value is None:
        return b"null"
    if isinstance(value, (int, float)):
        return literal(value)
    out = bytearray(b'"')
    short = {8: b"\\b", 9: b"\\t", 10: b"\\n", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}
    for byte in encode(value):
        out += short.get(byte) or (b"\\u%04x" % byte if byte < 32 else bytes([byte]))
    return bytes(out + b'"')


def width_of(text):
    return len(text.decode("utf-8", "surrogateescape"))


def backslashes(text):
    """The escapes in a separator."""
    names = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}
    return re.sub(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", lambda found: (
        chr(int(found[1][1:], 16)) if len(found[1]) == 3 and found[1][0] == "x"
        else chr(int(found[1], 8)) if found[1][0] in "01234567" else names.get(found[1], found[1])), text)


def words(line):
    """The arguments of a dot command."""
    found = []
    for match in re.finditer(r"""\s*(?:'([^']*)'?|"((?:\\.|[^"\\])*)"?|(\S+))""", line):
        single, double, bare = match.groups()
        found.append(single if single is not None else backslashes(double) if double is not None else bare)
    return found


def statements(sql):
    """Splits off the first statement: it, and the rest."""
    at = 0
    pattern = re.compile(r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|--[^\n]*|/\*.*?(?:\*/|$)|;""", re.S)
    for token in pattern.finditer(sql):
        if token[0] == ";" and sqlite3.complete_statement(sql[: token.end()]):
            return sql[: token.end()], sql[token.end():]
    return sql, ""


def blank(sql):
    return not re.sub(r"--[^\n]*|/\*.*?\*/|[\s;]", "", sql, flags=re.S)


class Shell:
    def __init__(self):
        self.mode, self.headers, self.headers_set = "list", False, False
        self.column, self.row, self.null, self.table = "|", "\n", "", "table"
        self.widths, self.bail, self.echo, self.readonly = [], False, False, False
        self.count_changes, self.timer, self.once = False, False, False
        self.filename, self.db, self.parameters = ":memory:", None, {}
        self.out, self.out_name = sys.stdout.buffer, "stdout"
        self.errors = 0

    # Output

    def put(self, data):
        self.out.write(encode(data))

    def complain(self, text):
        self.out.flush()
        sys.stderr.buffer.write(encode(text) + b"\n")
        sys.stderr.buffer.flush()

    def set_output(self, name, once=False):
        if self.out is not sys.stdout.buffer:
            self.out.close()
        self.out, self.out_name, self.once = sys.stdout.buffer, "stdout", once
        if name in ("", "stdout"):
            return True
        try:
            if name.startswith("|"):
                self.pipe = subprocess.Popen(["sh", "-c", name[1:]], stdin=subprocess.PIPE)
                self.out = self.pipe.stdin
            else:
                self.out = open(name, "wb") if name != "off" else open("/dev/null", "wb")
            self.out_name = name
        except OSError:
            self.complain(f'Error: cannot write to "{name}"')
            return False
        return True

    def cell(self, value):
        return encode(self.null) if value is None else plain(value)

    def rows(self, names, rows):
        """Prints a result."""
        names = [encode(name) for name in names]
        if self.mode in TABULAR:
            return self.tabular(names, list(rows))
        first, end, between = True, encode(self.row), encode(self.column)
        for row in rows:
            if first and self.headers and self.mode in ("list", "csv", "tabs", "ascii", "quote", "tcl", "html"):
                self.header(names, between, end)
            if self.mode == "line":
                width = max([5] + [width_of(name) for name in names])
                if not first:
                    self.put(b"\n")
                for name, value in zip(names, row):
                    self.put(b" " * (width - width_of(name)) + name + b" = " + self.cell(value) + b"\n")
            elif self.mode == "csv":
                self.put(between.join(self.csv(value) for value in row) + end)
            elif self.mode == "json":
                fields = b",".join(json_text(name.decode("utf-8", "surrogateescape")) + b":" + json_text(value)
                                   for name, value in zip(names, row))
                self.put((b"[" if first else b",\n") + b"{" + fields + b"}")
            elif self.mode == "quote":
                self.put(between.join(literal(value) for value in row) + end)
            elif self.mode == "insert":
                listed = "(" + ",".join(name_literal(name.decode("utf-8", "surrogateescape")) for name in names) + ")"
                into = encode(name_literal(self.table) + (listed if self.headers else ""))
                self.put(b"INSERT INTO " + into + b" VALUES(" + b",".join(literal(value, True) for value in row) + b");\n")
            elif self.mode == "html":
                self.put(b"<TR>" + b"".join(b"<TD>" + markup(self.cell(value)) + b"</TD>\n" for value in row) + b"</TR>\n")
            elif self.mode == "tcl":
                self.put(between.join(tcl(self.cell(value)) for value in row) + end)
            else:
                self.put(between.join(self.cell(value) for value in row) + end)
            first = False
        if self.mode == "json" and not first:
            self.put(b"]\n")

    def header(self, names, between, end):
        if self.mode == "html":
            self.put(b"<TR>" + b"".join(b"<TH>" + markup(name) + b"</TH>\n" for name in names) + b"</TR>\n")
            return
        shape = {"csv": self.csv, "quote": lambda name: literal(name.decode("utf-8", "surrogateescape")), "tcl": tcl}
        self.put(between.join(shape.get(self.mode, lambda name: name)(name) for name in names) + end)

    def csv(self, value):
        if value is None:
            return encode(self.null)
        text = plain(value)
        if not text or re.search(rb"[\x00-\x20\"'\x7f-\xff]", text) or encode(self.column) in text:
            return b'"' + text.replace(b'"', b'""') + b'"'
        return text

    def tabular(self, names, rows):
        if not rows:
            return
        show = literal if self.mode == "qbox" else self.cell
        set_widths = self.widths + [0] * (len(names) - len(self.widths))

        def lines(text, at):
            limit, found = abs(set_widths[at]), []
            for line in text.split(b"\n"):
                line = line.decode("utf-8", "surrogateescape").rstrip("\r")
                while limit and len(line) > limit:
                    found.append(line[:limit])
                    line = line[limit:]
                found.append(line)
            return found

        body = [[lines(show(value), at) for at, value in enumerate(row)] for row in rows]
        heads = [lines(name, at)[0] for at, name in enumerate(names)]
        widths = [max([abs(set_widths[at]), len(heads[at])] + [len(line) for row in body for line in row[at]])
                  for at in range(len(names))]
        several = any(len(cell) > 1 for row in body for cell in row)
        if self.mode == "column":
            def write(cells):
                padded = (text.rjust(width) if wanted < 0 else text.ljust(width)
                          for text, width, wanted in zip(cells, widths, set_widths))
                self.put("  ".join(padded) + "\n")
            if self.headers:
                write(heads)
                write(["-" * width for width in widths])
            rule, left, between, right = (lambda _: "\n"), None, None, None
        else:
            signs = {"box": "┌─┬┐├┼┤└┴┘│", "qbox": "┌─┬┐├┼┤└┴┘│", "table": "+-+++++++" + "+|", "markdown": "|-||||||||" + "|"}[self.mode]

            def rule(which):
                a, b, c = {"top": (0, 2, 3), "middle": (4, 5, 6), "bottom": (7, 8, 9)}[which]
                return signs[a] + signs[b].join(signs[1] * (width + 2) for width in widths) + signs[c] + "\n"

            def write(cells, centred=False):
                def pad(text, width, wanted):
                    if centred:
                        left = (width - len(text)) // 2
                        return " " * left + text + " " * (width - len(text) - left)
                    return text.rjust(width) if wanted < 0 else text.ljust(width)
                bar = signs[10]
                self.put(bar + bar.join(f" {pad(*three)} " for three in zip(cells, widths, set_widths)) + bar + "\n")
            if self.mode != "markdown":
                self.put(rule("top"))
            write(heads, True)
            self.put(rule("middle"))
        for index, row in enumerate(body):
            for at in range(max(len(cell) for cell in row)):
                write([cell[at] if at < len(cell) else "" for cell in row])
            if several and index + 1 < len(body) and self.mode != "markdown":
                self.put(rule("middle"))
        if self.mode in ("box", "table", "qbox"):
            self.put(rule("bottom"))

    # SQL

    def open(self):
        if self.db:
            return
        try:
            name = self.filename
            if self.readonly or name.startswith("file:"):
                uri = name if name.startswith("file:") else "file:" + name.replace("?", "%3f").replace("#", "%23") + "?mode=ro"
                self.db = sqlite3.connect(uri, isolation_level=None, uri=True)
            else:
                self.db = sqlite3.connect(name, isolation_level=None)
        except sqlite3.Error as error:
            self.complain(f'Error: unable to open database "{self.filename}": {error}')
            sys.exit(1)
        self.db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        self.db.create_function("readfile", 1, read_file)
        self.db.create_function("writefile", 2, write_file)
        self.db.create_function("regexp", 2, lambda pattern, text: text is not None and bool(re.search(pattern, str(text))))

    def query(self, sql, *values):
        self.open()
        return self.db.execute(sql, values).fetchall()

    def execute(self, sql):
        """Runs all statements of a text; the phase, code and message of what went wrong, or nothing."""
        self.open()
        rest = sql
        while not blank(rest):
            rest = rest.lstrip()
            one, following = statements(rest)
            started, before = time.monotonic(), self.db.total_changes
            try:
                cursor = self.db.cursor()
                wanted = {name for name in re.findall(r"[:@$](\w+)", one)}
                if wanted & self.parameters.keys():
                    cursor.execute(one, {name: self.parameters.get(name) for name in wanted})
                else:
                    cursor.execute(one, Unset() if wanted or "?" in one and "?" in re.sub(r"'[^']*'", "", one) else ())
                if cursor.description:
                    names = [column[0] for column in cursor.description]
                    if re.match(r"\s*explain\s+query\s+plan\b", one, re.I):
                        self.plan(cursor.fetchall())
                    else:
                        self.rows(names, cursor)
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 1) or 1
                if isinstance(error, sqlite3.ProgrammingError):
                    code = 1
                code &= 0xFF
                phase = "in prepare" if code == 1 and not is_step(str(error)) or code == 26 else "stepping"
                message = str(error) + (f" ({code})" if code > 1 else "")
                return phase, code, message + (self.context(rest, one, str(error)) if phase == "in prepare" else "")
            if self.count_changes:
                self.put(f"changes: {self.db.total_changes - before}   total_changes: {self.db.total_changes}\n")
            if self.timer:
                self.put(f"Run Time: real {time.monotonic() - started:.3f} user 0.000000 sys 0.000000\n")
            rest = following
        return None

    def plan(self, rows):
        """The tree of `explain query plan`."""
        self.put("QUERY PLAN\n")

        def walk(parent, indent):
            children = [row for row in rows if row[1] == parent]
            for row in children:
                last = row is children[-1]
                self.put(indent + ("`--" if last else "|--") + row[3] + "\n")
                walk(row[0], indent + ("   " if last else "|  "))
        walk(0, "")

    def context(self, sql, statement, message):
        """The line under a message that shows where."""
        at = self.position(statement, message)
        if at is None:
            return ""
        cut = max(0, at - 50)
        shown = re.sub(r"\s", " ", sql[cut:cut + 78])
        at -= cut
        return f"\n  {shown}\n  " + (" " * at + "^--- error here" if at < 25 else " " * (at - 14) + "error here ---^")

    def position(self, sql, message):
        found = re.fullmatch(r'near "(.*)": syntax error|unrecognized token: "(.*)"', message, re.S)
        if found:
            token = found[1] if found[1] is not None else found[2]
            at = sql.find(token)
            # The parser stops where what stands before could still have become a statement.
            while at >= 0 and found[1] is not None:
                try:
                    self.db.execute("explain " + sql[:at])
                except sqlite3.Error as error:
                    if str(error) == "incomplete input" or not sql[:at].strip():
                        return at
                else:
                    return at
                at = sql.find(token, at + 1)
            return at if at >= 0 else None
        found = re.fullmatch(r"(?:no such column|no such function|ambiguous column name): (.*)", message)
        name = found and found[1]
        if not found:
            found = re.fullmatch(r"(?:wrong number of arguments to function|misuse of aggregate:?|misuse of window function) (\w+)\(\)", message)
            name = found and found[1]
        if not name:
            return None
        match = re.search(r"(?<![\w.'\"])[\"]?" + r"\s*\.\s*".join(map(re.escape, name.split("."))) + r"\b", sql, re.I)
        return match.start() if match else None

    def argument(self, text):
        """Runs an argument of the command line; a status when it ends everything."""
        if text.startswith("."):
            status = self.dot(text)
            return None if status is None else status
        failed = self.execute(text)
        if failed:
            phase, code, message = failed
            self.complain(f"Error: {phase}, {message}")
            return code
        return None

    def script(self, lines):
        """Runs lines from a file or standard input; a status when they end everything."""
        pending, started = "", 0
        for number, line in enumerate(lines, 1):
            line = line.decode("utf-8", "surrogateescape").rstrip("\n")
            if line.endswith("\r"):
                line = line[:-1]
            if self.echo and (pending or line.strip()):
                self.put(line + "\n")
            if not pending:
                if blank(line) and "/*" not in line:
                    continue
                if line.startswith((".", "#")):
                    if line.startswith("."):
                        status = self.dot(line)
                        if status is not None:
                            if self.quitting:
                                return status
                            self.errors += 1
                            if self.bail:
                                return 1
                    continue
                started = number
            pending += ("\n" if pending else "") + line
            if ";" in line and sqlite3.complete_statement(pending):
                if self.failed(pending, started) and self.bail:
                    return 1
                pending = ""
                if self.once:
                    self.set_output("")
        if not blank(pending) and self.failed(pending, started) and self.bail:
            return 1
        return None

    def failed(self, sql, line):
        failed = self.execute(sql)
        if failed:
            phase, _, message = failed
            kind = "Parse error" if phase == "in prepare" else "Runtime error"
            self.complain(f"{kind} near line {line}: {message}")
            self.errors += 1
        return failed

    # Dot commands

    quitting = False

    def dot(self, line):
        """Runs a dot command; a status when it failed or ends the shell."""
        given = words(line[1:])
        if not given:
            return None
        name, args = given[0], given[1:]
        matches = sorted(method[4:] for method in dir(self) if method.startswith("dot_") and method[4:].startswith(name))
        preferred = {"h": "headers", "i": "import", "s": "schema", "t": "tables", "q": "quit", "e": "exit", "d": "dump", "m": "mode"}
        full = name if name in matches else preferred.get(name, matches[0] if matches and len(name) > 1 else None)
        if full is None:
            self.complain(f'Error: unknown command or invalid arguments:  "{name}". Enter ".help" for help')
            return 1
        try:
            self.open()
            return getattr(self, "dot_" + full)(args)
        except sqlite3.Error as error:
            self.complain(f"Error: {error}")
            return 1

    def usage(self, text):
        self.complain("Usage: " + text)
        return 1

    def switch(self, args, usage):
        if len(args) != 1:
            return self.usage(usage)
        return args[0].lower() in ("on", "yes", "true", "1")

    def dot_quit(self, args):
        self.quitting = True
        return 0

    def dot_exit(self, args):
        self.quitting = True
        return int(args[0]) & 0xFF if args and args[0].lstrip("-").isdigit() else 0

    def dot_headers(self, args):
        if len(args) != 1:
            return self.usage(".headers on|off")
        self.headers, self.headers_set = self.switch(args, ""), True

    def dot_mode(self, args):
        if not args:
            self.put(f"current output mode: {self.mode}\n")
            return None
        mode = next((mode for mode in MODES if mode.startswith(args[0].rstrip("s") if args[0] != "tabs" else "tabs")), None)
        mode = "tabs" if args[0] == "tabs" else "line" if args[0] == "lines" else "column" if args[0] == "columns" else mode
        if mode is None:
            self.complain("Error: mode should be one of: " + " ".join(MODES))
            return 1
        self.set_mode(mode)
        if mode == "insert":
            self.table = args[1] if len(args) > 1 else "table"

    def set_mode(self, mode):
        self.mode = mode
        if mode in TABULAR and not self.headers_set:
            self.headers = True
        pairs = {"csv": (",", "\r\n"), "tabs": ("\t", None), "list": ("|", "\n"), "quote": (",", "\n"), "ascii": ("\x1f", "\x1e"),
                 "tcl": (" ", "\n"), "line": (None, "\n")}
        column, row = pairs.get(mode, (None, None))
        self.column, self.row = column or self.column, row or self.row

    def dot_separator(self, args):
        if not 1 <= len(args) <= 2:
            return self.usage(".separator COL ?ROW?")
        self.column = backslashes(args[0])
        if len(args) > 1:
            self.row = backslashes(args[1])

    def dot_nullvalue(self, args):
        if len(args) != 1:
            return self.usage(".nullvalue STRING")
        self.null = args[0]

    def dot_width(self, args):
        self.widths = [int(text) for text in args if text.lstrip("-").isdigit()]

    def dot_print(self, args):
        self.put(" ".join(args) + "\n")

    def dot_echo(self, args):
        self.echo = self.switch(args, ".echo on|off") is True

    def dot_bail(self, args):
        self.bail = self.switch(args, ".bail on|off") is True

    def dot_changes(self, args):
        self.count_changes = self.switch(args, ".changes on|off") is True

    def dot_timer(self, args):
        self.timer = self.switch(args, ".timer on|off") is True

    def dot_eqp(self, args):
        return None

    dot_stats = dot_explain = dot_timeout = dot_binary = dot_prompt = dot_log = dot_trace = dot_eqp

    def dot_help(self, args):
        wanted = [line for line in DOT_HELP.splitlines(True) if not args or args[-1].lstrip(".") in line]
        self.put("".join(wanted) or f"Nothing matches '{args[-1]}'\n")

    def dot_version(self, args):
        self.put(f"SQLite {VERSION}\n")

    def dot_output(self, args):
        return None if self.set_output(args[-1] if args else "") else 1

    def dot_once(self, args):
        return None if self.set_output(args[-1] if args else "", True) else 1

    def dot_cd(self, args):
        try:
            os.chdir(args[0] if args else "")
        except OSError:
            self.complain(f'Cannot change to directory "{args[0] if args else ""}"')
            return 1

    def dot_system(self, args):
        self.out.flush()
        status = subprocess.call(["sh", "-c", " ".join(args)])
        if status:
            self.complain(f"System command returns {status}")

    dot_shell = dot_system

    def dot_open(self, args):
        args = [arg for arg in args if not arg.startswith("-")]
        if self.db:
            self.db.close()
        self.db, self.filename = None, args[0] if args else ":memory:"
        self.open()

    def dot_read(self, args):
        if len(args) != 1:
            return self.usage(".read FILE")
        try:
            with open(args[0], "rb") as file:
                before = self.errors
                status = self.script(file)
        except OSError:
            self.complain(f'Error: cannot open "{args[0]}"')
            return 1
        if status is not None:
            return status
        return 1 if self.errors > before else None

    def dot_tables(self, args):
        pattern = args[0] if args else "%"
        names = [row[0] for row in self.query(
            "SELECT name FROM sqlite_schema WHERE type IN ('table','view') AND name NOT LIKE 'sqlite_%' AND name LIKE ? ORDER BY 1",
            pattern)]
        for (_, schema, _) in self.query("PRAGMA database_list"):
            if schema not in ("main", "temp"):
                names += [f"{schema}.{row[0]}" for row in self.query(
                    f'SELECT name FROM "{schema}".sqlite_schema WHERE type IN (\'table\',\'view\') AND name NOT LIKE \'sqlite_%\' '
                    "AND name LIKE ? ORDER BY 1", pattern)]
        self.columns(sorted(names))

    def columns(self, names):
        if not names:
            return
        width = max(map(len, names))
        across = max(1, 80 // (width + 2))
        down = (len(names) + across - 1) // across
        for row in range(down):
            self.put("  ".join(name.ljust(width) for name in names[row::down]) + "\n")

    def dot_indexes(self, args):
        where, values = ("AND tbl_name LIKE ?", args[:1]) if args else ("", [])
        self.columns([row[0] for row in self.query(
            f"SELECT name FROM sqlite_schema WHERE type='index' {where} ORDER BY 1", *values)])

    dot_indices = dot_indexes

    def dot_schema(self, args):
        args = [arg for arg in args if not arg.startswith("-")]
        for kind, name, sql, table in self.query("SELECT type, name, sql, tbl_name FROM sqlite_schema WHERE sql NOT NULL ORDER BY rowid"):
            if args and not self.query("SELECT ? LIKE ?", table, args[0])[0][0]:
                continue
            if name.startswith("sqlite_") and not args:
                if name != "sqlite_sequence":
                    continue
            if kind == "view":
                names = ",".join(name_literal(row[1]) for row in self.query(f"PRAGMA table_info({name_literal(name)})"))
                sql += f"\n/* {name_literal(name)}({names}) */"
            self.put(if_not_exists(sql) + ";\n")

    def dot_fullschema(self, args):
        return self.dot_schema([])

    def dot_databases(self, args):
        for _, name, file in self.query("PRAGMA database_list"):
            self.put(f'{name}: {file or chr(34) * 2} {"r/o" if self.readonly else "r/w"}\n')

    def dot_dump(self, args):
        patterns = [arg for arg in args if not arg.startswith("-")] or ["%"]
        self.put("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
        matching = " OR ".join(["tbl_name LIKE ?"] * len(patterns))
        tables = self.query("SELECT name, sql FROM sqlite_schema WHERE type='table' AND sql NOT NULL AND "
                            f"({matching}) ORDER BY tbl_name='sqlite_sequence', rowid", *patterns)
        for name, sql in tables:
            if name == "sqlite_sequence":
                self.put("DELETE FROM sqlite_sequence;\n")
            elif name.startswith("sqlite_stat"):
                self.put("ANALYZE sqlite_schema;\n")
            elif name.startswith("sqlite_"):
                continue
            else:
                self.put(if_not_exists(sql) + ";\n")
            quoted = '"' + name.replace('"', '""') + '"'
            hidden = [row[1] for row in self.query(f"PRAGMA table_xinfo({quoted})") if row[6] in (0,)]
            chosen = ",".join('"' + column.replace('"', '""') + '"' for column in hidden)
            for row in self.db.execute(f"SELECT {chosen} FROM {quoted}"):
                self.put(f"INSERT INTO {name_literal(name)} VALUES(".encode() + b",".join(literal(value, True) for value in row) + b");\n")
        others = self.query("SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND type IN ('index','trigger','view') AND "
                            f"({matching}) ORDER BY type COLLATE NOCASE DESC, rowid" if False else
                            "SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND type IN ('index','trigger','view') AND "
                            f"({matching})", *patterns)
        for (sql,) in others:
            self.put(sql + ";\n")
        self.put("COMMIT;\n")

    def dot_import(self, args):
        column, row, skip, names, comma = self.column, self.row, 0, [], None
        arguments = iter(args)
        for arg in arguments:
            option = arg.lstrip("-") if arg.startswith("-") else ""
            if option == "csv":
                comma = ","
            elif option == "ascii":
                column, row = "\x1f", "\x1e"
            elif option == "skip":
                skip = int(next(arguments, "0"))
            elif option in ("v", "schema"):
                if option == "schema":
                    next(arguments, None)
            else:
                names.append(arg)
        if len(names) != 2:
            self.complain(f'ERROR: missing {"FILE" if not names else "TABLE"} argument. Usage:\n.import FILE TABLE' if len(names) < 2
                          else f'ERROR: extra argument: "{names[2]}". Usage:\n.import FILE TABLE')
            return 1
        file, table = names
        try:
            if file.startswith("|"):
                data = subprocess.run(["sh", "-c", file[1:]], stdout=subprocess.PIPE, check=False).stdout
            else:
                with open(file, "rb") as opened:
                    data = opened.read()
        except OSError:
            self.complain(f'Error: cannot open "{file}"')
            return 1
        if comma or self.mode == "csv" and column == ",":
            column, row = comma or column, "\n"
        if self.row == "\r\n":
            self.row = "\n"
        if column == "":
            self.complain("Error: non-null column separator required for import")
            return 1
        records = fields(data.decode("utf-8", "surrogateescape"), column, row if row != "\r\n" else "\n")
        for _ in range(skip):
            next(records, None)
        quoted = '"' + table.replace('"', '""') + '"'
        count = len(self.query(f"PRAGMA table_info({quoted})"))
        if not count:
            head = next(records, None)
            if head is None:
                self.complain(f"{file}: empty file")
                return 1
            listed = ", ".join('"' + name.replace('"', '""') + '" TEXT' for name in head[1])
            self.db.execute(f"CREATE TABLE IF NOT EXISTS {quoted}(\n{listed})")
            count = len(head[1])
        insert = f"INSERT INTO {quoted} VALUES({','.join('?' * count)})"
        whole = not self.db.in_transaction
        if whole:
            self.db.execute("BEGIN")
        for line, record in records:
            if len(record) < count:
                self.complain(f"{file}:{line}: expected {count} columns but found {len(record)} - filling the rest with NULL")
                record = record + [None] * (count - len(record))
            elif len(record) > count:
                self.complain(f"{file}:{line}: expected {count} columns but found {len(record)} - extras ignored")
                record = record[:count]
            try:
                self.db.execute(insert, record)
            except sqlite3.Error as error:
                self.complain(f"{file}:{line}: INSERT failed: {error}")
        if whole:
            self.db.execute("COMMIT")

    def dot_backup(self, args):
        args = [arg for arg in args if not arg.startswith("-")]
        if not args:
            self.complain("missing FILENAME argument on .backup")
            return 1
        target = sqlite3.connect(args[-1])
        self.db.backup(target)
        target.close()

    dot_save = dot_backup

    def dot_restore(self, args):
        source = sqlite3.connect(args[-1])
        source.backup(self.db)
        source.close()

    def dot_parameter(self, args):
        action = args[0] if args else ""
        if action == "set" and len(args) == 3:
            name, text = args[1].lstrip(":@$"), args[2]
            try:
                value = self.db.execute(f"SELECT {text}").fetchone()[0]
            except sqlite3.Error:
                value = text
            self.parameters[name] = value
        elif action == "list":
            width = max((len(name) + 1 for name in self.parameters), default=0)
            for name, value in sorted(self.parameters.items()):
                self.put(f":{name}".ljust(width) + " " + literal(value).decode() + "\n")
        elif action == "clear":
            self.parameters.clear()
        elif action == "unset" and len(args) == 2:
            self.parameters.pop(args[1].lstrip(":@$"), None)

    def dot_show(self, args):
        def shown(text):
            return '"' + text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
        on = {True: "on", False: "off"}
        widths = "".join(f"{width} " for width in self.widths)
        for name, value in (("echo", on[self.echo]), ("eqp", "off"), ("explain", "auto"), ("headers", on[self.headers]),
                            ("mode", self.mode), ("nullvalue", shown(self.null)), ("output", self.out_name),
                            ("colseparator", shown(self.column)), ("rowseparator", shown(self.row)), ("stats", "off"),
                            ("width", widths), ("filename", self.filename)):
            self.put(f"{name:>12}: {value}\n")


class Unset(dict):
    """Parameters that nobody set are NULL."""

    def __missing__(self, name):
        return None


def is_step(message):
    """Whether an error without a code of its own comes from running, not from reading, a statement."""
    return bool(re.search(r"constraint failed|integer overflow|malformed JSON|cannot (commit|rollback|start a)|locked|datatype mismatch", message))


def if_not_exists(sql):
    return re.sub(r"^CREATE TABLE (?=['\"])", "CREATE TABLE IF NOT EXISTS ", sql)


def markup(text):
    for byte, name in ((b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&quot;"), (b"'", b"&#39;")):
        text = text.replace(byte, name)
    return text


def tcl(text):
    text = text.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\t", b"\\t").replace(b"\r", b"\\r")
    return b'"' + text + b'"'


def fields(text, column, row):
    """The records of delimited text, each with the number of its first line; quotes as in RFC 4180."""
    at, line = 0, 1
    while at < len(text):
        record, started = [], line
        while True:
            if text.startswith('"', at) and row == "\n":
                value, at = "", at + 1
                while at < len(text):
                    end = text.find('"', at)
                    end = len(text) if end < 0 else end
                    value += text[at:end]
                    at = end + 1
                    if not text.startswith('"', at):
                        break
                    value += '"'
                    at += 1
                line += value.count("\n")
                rest = [place for place in (text.find(column, at), text.find(row, at)) if place >= 0]
                end = min(rest, default=len(text))
                value += text[at:end].rstrip("\r") if row == "\n" else text[at:end]
            else:
                rest = [place for place in (text.find(column, at), text.find(row, at)) if place >= 0]
                end = min(rest, default=len(text))
                value = text[at:end]
                if row == "\n" and not text.startswith(column, end):
                    value = value.removesuffix("\r")
            record.append(value)
            if end < len(text) and text.startswith(column, end):
                at = end + len(column)
                continue
            at = end + len(row)
            line += 1
            break
        yield started, record


def read_file(name):
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError:
        return None


def write_file(name, data):
    with open(name, "wb") as file:
        return file.write(data if isinstance(data, bytes) else encode(str(data)))


def main(args):
    shell, texts, commands, init = Shell(), [], [], None
    named = False
    arguments = iter(args)
    for arg in arguments:
        if not arg.startswith("-") or arg == "-":
            if named:
                texts.append(arg)
            else:
                shell.filename, named = arg, True
            continue
        option = arg[2:] if arg.startswith("--") else arg[1:]
        takes = {"cmd", "init", "separator", "newline", "nullvalue", "vfs", "mmap", "maxsize", "nonce"}
        value = next(arguments, None) if option in takes else ""
        if value is None:
            sys.stderr.write(f"sqlite3: Error: missing argument to {arg}\n")
            return 1
        if option in ("header", "headers"):
            shell.headers = shell.headers_set = True
        elif option in ("noheader", "noheaders"):
            shell.headers, shell.headers_set = False, True
        elif option == "csv":
            shell.mode, shell.column = "csv", ","
        elif option in MODES:
            row = shell.row
            shell.set_mode(option)
            shell.row = row if option != "ascii" else shell.row
        elif option == "cmd":
            commands.append(value)
        elif option == "init":
            init = value
        elif option == "separator":
            shell.column = backslashes(value)
        elif option == "newline":
            shell.row = backslashes(value)
        elif option == "nullvalue":
            shell.null = value
        elif option in ("bail", "echo", "readonly"):
            setattr(shell, option, True)
        elif option == "version":
            shell.put(VERSION + "\n")
            return 0
        elif option == "help":
            sys.stderr.write(HELP)
            return 0
        elif option in takes or option in ("batch", "interactive", "stats", "safe", "nofollow", "memtrace", "append", "deserialize"):
            pass
        else:
            sys.stderr.write(f"sqlite3: Error: unknown option: {arg}\nUse -help for a list of options.\n")
            return 1
    if init:
        shell.dot("." + 'read "' + init + '"')
    for text in commands + texts:
        status = shell.argument(text)
        if status is not None and (texts or shell.bail or shell.quitting):
            return status
    if texts:
        return 0
    status = shell.script(sys.stdin.buffer)
    return status if status is not None else int(shell.errors > 0)


try:
    status = main(sys.argv[1:])
    sys.stdout.buffer.flush()
except BrokenPipeError:
    status = 1
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
sys.exit(status)
