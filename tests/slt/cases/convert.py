#!/usr/bin/env python3
"""Turns cases with right answers, kept as neutral JSON, into regression files of the product.

    convert.py CASES_FOLDER OUT_FOLDER

CASES_FOLDER holds a folder for each project the cases come from, with a JSON file for each case and a folder `data` of CSV
files. OUT_FOLDER gets `<project>/<case>.slt` for each case that can be said and whose operators exist, `data/*.part` with the
rows of data files that those cases include, and `README.md` with a table of all cases: which run, which wait for an operator,
which can't be said, and why. The same input gives the same bytes.

What is particular to the product stands in tables at the top: DIALECT (the neutral dialect -> ours), ERRORS (kind of an error
-> what its message must say), NOT_YET and NOT_EXPRESSIBLE (cases that are not written), PROVES (what a case proves), and the
few things that a case can only say in words (PREPARE, ALTERNATIVE, LEVADA).

With LEVADA=<binary> in the environment the cases of NOT_YET are written into a temporary folder and run, and those that pass
are named: they are to be taken off the list. Nothing else depends on it.
"""
import csv
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from decimal import Decimal

# ---------------------------------------------------------------------------------------------------------------- tables

# The neutral dialect -> ours: patterns and what takes their place, in this order, for every query.
DIALECT = [
    # Whole seconds since 1970.
    (r"epoch_seconds\(([^()]+)\)", r"CAST(floor(extract(epoch FROM \1)) AS BIGINT)"),
    (r"\bLEFT SEMI JOIN\b", "LEFT SEMI JOIN"),
    # A watermark that is declared in a query stands at the end of its block.
    (r" WITH WATERMARK (\w+) DELAY ('[^']*') (GROUP BY .*)$", r" \3 WITH WATERMARK \1 DELAY \2"),
]

# Types of the neutral dialect -> ours. What is not here is written as it is.
TYPES = {"BYTES": "BYTEA"}

# Names that are written in quotes.
RESERVED = {"first", "second", "value", "end", "start", "window"}

# Clauses that differ in our dialect, case by case: whole queries.
QUERIES = {}

# Kinds of errors -> what the message must say, a regular expression without regard to case.
ERRORS = {
    "unsupported_query": r"not supported|refused|can't|would have to",
    "unsupported_output_mode": r"OUTPUT MODE",
    "invalid_option": r"setting|option",
    "invalid_window": r"window|interval",
    "invalid_watermark_delay": r"delay|interval",
    "watermark_type": r"watermark",
    "watermark_redefined": r"watermark",
    "unknown_column": r"column",
    "checkpoint_incompatible": r"checkpoint",
    "checkpoint_not_empty": r"checkpoint",
    "cannot_infer_schema": r"column|schema|infer",
    "path_not_found": r"path|no such file|not found",
    "type_error": r"type|MAP|key",
    "runtime_error": r"zero",
}

# What a case's own error must say beside its kind.
NAMES = {}

# Which statement of a case is refused, where the case leaves it open or says it in other words: create, set, start or run.
REFUSED_AT = {}

NOT_YET = {}
NOT_EXPRESSIBLE = {}

# Which of the answers that a case allows is ours, and by which rule.
ALTERNATIVE = {}

# Edits of a checkpoint that a case has in words -> a command.
PREPARE = {}

# Where our answer is not Spark's, or stands on a rule of ours: a comment in the file.
LEVADA = {}

# What a case proves.
PROVES = {}

CLOCK = "2026-01-01T00:00:00Z"
EPOCH = datetime(1970, 1, 1)

# ------------------------------------------------------------------------------------------------------------- values


def instant(seconds, separator):
    micros = int(Decimal(str(seconds)) * 1000000)
    time = EPOCH + timedelta(microseconds=micros)
    text = time.strftime("%Y-%m-%d") if time.year >= 1000 else f"{time.year:04}-{time:%m-%d}"
    text += separator + time.strftime("%H:%M:%S")
    if time.microsecond % 1000:
        return text + f".{time.microsecond:06}"
    return text + (f".{time.microsecond // 1000:03}" if time.microsecond else "")


def name(text):
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", text) and text not in RESERVED
    return text if plain else '"' + text.replace('"', '""') + '"'


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def literal(value, kind):
    """A value as VALUES has it."""
    if value is None:
        return "NULL"
    if kind.startswith("ARRAY<"):
        return "[" + ", ".join(literal(v, kind[6:-1]) for v in value) + "]"
    if kind == "BOOLEAN":
        return "TRUE" if value else "FALSE"
    if kind == "TIMESTAMP":
        return quoted(instant(value, " "))
    if kind == "INTERVAL":
        return "INTERVAL " + quoted(value)
    if kind in ("STRING", "DATE", "BYTES"):
        return quoted(value)
    if kind in ("FLOAT", "DOUBLE") and isinstance(value, str):
        return quoted(value)
    return str(value)


def visible(text):
    """A text as exact files show it."""
    if text == "":
        return "(empty)"
    mark = "\\" if text in ("NULL", "(empty)", "<ignore>") or text.startswith(("<~", "\\")) else ""
    for there, shown in ((" ", "␠"), ("\t", "␉"), ("\n", "␤"), ("\r", "␍"), ("\0", "␀")):
        text = text.replace(there, shown)
    return mark + text


def shortest(value, single):
    if single:
        value = struct.unpack("f", struct.pack("f", value))[0]
    text = format(Decimal(f"{value:.{6 if single else 11}e}").normalize(), "f")
    return "-0" if value == 0 and str(value).startswith("-") else ("0" if value == 0 else text)


def cell(value, kind):
    """A value as exact files have it."""
    if value is None:
        return "NULL"
    if kind in ("FLOAT", "DOUBLE"):
        return value if isinstance(value, str) else shortest(float(value), kind == "FLOAT")
    if kind == "TIMESTAMP":
        return instant(value, "T")
    if kind == "BOOLEAN":
        return "true" if value else "false"
    if kind.startswith("ARRAY<"):
        return visible("[" + ", ".join(cell(v, kind[6:-1]) for v in value) + "]")
    return visible(str(value))


def letter(kind):
    letters = {"BOOLEAN": "B", "INT": "I", "BIGINT": "I", "FLOAT": "R", "DOUBLE": "R", "STRING": "T", "DATE": "D"}
    letters.update({"TIMESTAMP": "P", "DECIMAL": "R"})
    return letters.get(kind.split("(")[0], "?")


# ------------------------------------------------------------------------------------------------------------ records


class NotWritten(Exception):
    """Why a case can't be written."""


def top_level(text, separator=","):
    """Parts of a list, not those inside brackets."""
    parts, depth, at = [], 0, 0
    for n, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == separator and depth == 0:
            parts.append(text[at:n])
            at = n + 1
    return parts + [text[at:]]


class File:
    """One case becoming a file."""

    def __init__(self, case):
        self.case = case
        self.id = case["id"]
        self.records = []
        self.started = False
        self.query = QUERIES.get(self.id) or self.ours(case["query_sql"])
        self.columns = case["result_columns"] or []
        self.config = case.get("config") or {}
        self.streams = {s["name"]: s for s in case["streams"]}
        self.append = case["output_mode"] in ("append", "batch")
        self.seen = set()
        self.parts = {}
        self.files = 0
        texts = json.dumps(case["steps"], default=str)
        self.substitutes = any("source" in s for s in case["streams"]) or any(
            word in texts for word in ("write_file", "make_dir", "lose_", "prepare_checkpoint", "expect_file_exists")
        )
        runs = [s["run"] for s in case["steps"] if "run" in s and isinstance(s["run"], dict)]
        self.no_data = all(r.get("no_data_batches", True) for r in runs) or not runs

    @staticmethod
    def ours(query):
        for pattern, instead in DIALECT if query else []:
            query = re.sub(pattern, instead, query)
        return query

    def say(self, *lines):
        self.records.append("\n".join(lines))

    # ---- what is created

    def create(self, stream, refused=None):
        source = stream.get("source")
        columns = [f"{name(c)} {TYPES.get(t, t)}" for c, t in stream["columns"]]
        mark = stream.get("watermark")
        if mark:
            column = name(mark["column"])
            columns.append(f"WATERMARK FOR {column} AS {column} - INTERVAL '{mark['delay']}'")
        sql = f"CREATE STREAM {name(stream['name'])}" + (f" ({', '.join(columns)})" if columns else "")
        if source:
            if source["format"] == "kafka":
                raise NotWritten("kafka")
            options = [f"connector = 'file', format = '{source['format']}', path = '$__TEST_DIR__/{source['path']}'"]
            for key, value in (source.get("options") or {}).items():
                options.append(f"{key} = {'true' if value is True else value}")
            sql += f" WITH ({', '.join(options)})"
        self.say(refused or "statement ok", sql)

    def create_all(self, refused=None):
        for stream in self.case["streams"]:
            self.create(stream, refused)
        for table in self.case["static_tables"]:
            columns = ", ".join(f"{name(c)} {TYPES.get(t, t)}" for c, t in table["columns"])
            self.say("statement ok", f"CREATE TABLE {name(table['name'])} ({columns})")
            if table["rows"]:
                self.say("statement ok", f"INSERT INTO {name(table['name'])} VALUES " + self.values(table, table["rows"]))

    def start_sql(self, query=None, trigger=None):
        sql = f"START QUERY q AS {query or self.query}"
        sql += f"\nOUTPUT MODE {self.case['output_mode'].upper()}"
        if trigger:
            sql += f" TRIGGER {trigger}"
        if self.config.get("checkpoint"):
            sql += f" CHECKPOINT {quoted(self.config['checkpoint'])}"
        if not self.no_data:
            sql += " WITH (no_data_batches = false)"
        return sql

    def start(self):
        if not self.started and self.case["output_mode"] != "batch":
            self.started = True
            self.say("statement ok", self.start_sql())

    # ---- rows

    def values(self, of, rows):
        kinds = [t for _, t in of["columns"]]
        shown = ["(" + ", ".join(literal(v, k) for v, k in zip(row, kinds)) + ")" for row in rows]
        lines, line = [], ""
        for n, row in enumerate(shown):
            row += "," if n + 1 < len(shown) else ""
            if line and len(line) + len(row) > 110:
                lines.append(line)
                line = ""
            line += (" " if line else "") + row
        return "\n".join(lines + [line])

    def feed(self, stream, rows):
        self.say(f"feed {name(stream)}", self.values(self.streams[stream], rows))

    def types(self):
        return "".join(letter(t) for _, t in self.columns)

    def rows(self, rows, ops=False, ordered=False):
        kinds = [t for _, t in self.columns]
        out = []
        keys = self.keys() if ops else []
        for row in rows:
            cells = [cell(v, k) for v, k in zip(row, kinds)]
            if ops:
                key = tuple(cells[n] for n in keys)
                cells.insert(0, "+U" if key in self.seen else "+I")
                self.seen.add(key)
            out.append(cells)
        if not ordered:
            out.sort(key=lambda cells: [c.encode() for c in cells])
        return [" ".join(cells) for cells in out]

    def keys(self):
        """The columns of the result that are no aggregates."""
        items = top_level(re.match(r"SELECT (.*?) FROM ", self.case["query_sql"]).group(1))
        aggregates = r"\b(count|sum|avg|min|max|array_agg)\("
        return [n for n, item in enumerate(items) if not re.search(aggregates, item)]

    # ---- what happens

    def run(self, how, wanted):
        """A run, and the rows that are expected to be new after it."""
        self.start()
        how = how if isinstance(how, dict) else {}
        trigger = how.get("trigger")
        if trigger:
            raise NotWritten(f"trigger {trigger} within a case is said by hand")
        batches = how.get("max_batches", "until-idle")
        head = f"step q {batches}"
        if wanted is None:
            return self.say(head)
        rows, ordered = wanted
        ops = self.case["output_mode"] == "update"
        sort = "" if ordered else " rowsort"
        self.say(f"{head} {self.types()}{sort}", "----", *self.rows(rows, ops, ordered))

    def all(self, rows, ordered):
        if self.case["output_mode"] == "update":
            raise NotWritten("all rows of an UPDATE query have no one order")
        which = "last" if self.case["output_mode"] == "complete" else "all"
        sort = "" if ordered else " rowsort"
        if self.case["output_mode"] == "batch":
            return self.say(f"query {self.types()}{sort}", self.query, "----", *self.rows(rows, False, ordered))
        self.start()
        self.say(f"emitted q {which} {self.types()}{sort}", "----", *self.rows(rows, False, ordered))

    def command(self, text):
        self.say("system ok", text)

    def add_file(self, step, folder):
        stream = self.streams[step["stream"]]
        with open(folder / step["path"], newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        kinds = [t for _, t in stream["columns"]]
        size = step["rows_per_batch"]
        parts, batches = [], [rows[n : n + size] for n in range(0, len(rows), size)]
        for batch in batches:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            for row in batch:
                writer.writerow(instant(v, "T") if k == "TIMESTAMP" and v else v for v, k in zip(row, kinds))
            parts.append(f"feed {stream['name']} as csv\n{text.getvalue()}\nstep q until-idle\n")
        # Of a large file several parts, none of them larger than 200 kB.
        each = 4 if len(rows) > 2000 else len(parts)
        stem = pathlib.Path(step["path"]).stem
        for n in range(0, len(parts), each):
            file = f"{stem}_{n // each + 1}.part" if each < len(parts) else f"{stem}.part"
            self.parts[file] = "\n".join(parts[n : n + each])
        self.start()
        self.say(f"include ../data/{stem}{'_*' if each < len(parts) else ''}.part")

    def write_file(self, step):
        self.files += 1
        path = pathlib.PurePosixPath(step["path"])
        lines = step["content"].replace("'", "'\\''")
        when = step.get("mtime_s", 1000 + self.files)
        target = f'"$__TEST_DIR__/{path}"'
        # A file appears whole: it is written under a hidden name.
        hidden = f'"$__TEST_DIR__/{path.parent}/.new"'
        text = "' '".join(lines.split("\n"))
        shape = "\\n".join(["%s"] * len(lines.split("\n")))
        self.command(
            f'mkdir -p "$__TEST_DIR__/{path.parent}" && printf \'{shape}\' \'{text}\' > {hidden} '
            f"&& touch -d @{when} {hidden} && mv {hidden} {target}"
        )

    def restart(self, how):
        how = how if isinstance(how, dict) else {}
        if not (how.get("lose_last_commit") or how.get("advance_clock_s")):
            for key, value in (how.get("config") or {}).items():
                self.say("statement ok", f"SET {key} = '{value}'")
            return self.say("restart engine")
        self.say("stop q")
        if how.get("lose_last_commit"):
            commits = '"$__TEST_DIR__/checkpoints/q/commits"'
            self.command(f"cd {commits} && rm \"$(ls | sort -n | tail -n 1)\"")
        if how.get("advance_clock_s"):
            self.say(f"clock advance {how['advance_clock_s']} seconds")
        self.say("restart query q")

    def refused(self, what, changed):
        kind, at = what["kind"], REFUSED_AT.get(self.id, what["at"])
        said = NAMES.get(self.id) or [re.escape(word) for word in what.get("message_should_name", [])]
        pattern = "(?is)" + (".*".join(said) if said else ERRORS[kind])
        error = f"statement error {pattern}"
        if at == "run":
            self.start()
            return self.say(f"step q error {pattern}")
        if at == "create":
            return self.create_all(error)
        if at == "configure":
            for key, value in self.config.items():
                self.say(error, f"SET {key} = '{value}'")
            return None
        self.say(error, self.start_sql(changed))

    def state(self, wanted, runs):
        if runs != 1 and set(wanted) != {"total"}:
            raise NotWritten("state counts over several runs")
        if set(wanted) - {"total", "updated", "removed", "dropped_by_watermark"}:
            raise NotWritten("state counts by operator, or several that are right")
        keys = {"total": "rows", "updated": "updated", "removed": "removed", "dropped_by_watermark": "dropped_late"}
        self.say("progress q", *[f"state.{keys[k]} = {v}" for k, v in wanted.items()])

    # ---- the whole

    def steps(self, folder):
        case = self.case
        steps = case["steps"]
        errors = [s["expect_error_kind"] for s in steps if "expect_error_kind" in s]
        at = [REFUSED_AT.get(self.id, e["at"]) for e in errors]
        if at != ["create"]:
            self.create_all()
        for key, value in self.config.items():
            if key == "multiple_watermark_policy" and at != ["configure"]:
                self.say("statement ok", f"SET {key} = '{value}'")
        new = [n for n, s in enumerate(steps) if "expect_new" in s]
        changed, runs, since, n = None, 0, 0, 0
        done = set()
        for n, step in enumerate(steps):
            key = next(k for k in step if k not in ("ordered", "change_streams"))
            what, ordered = step[key], step.get("ordered", False)
            if key == "add":
                self.feed(what["stream"], what["rows"])
            elif key == "add_many":
                for one in what:
                    self.feed(one["stream"], one["rows"])
            elif key == "add_file":
                self.add_file(what, folder)
            elif key in ("run", "flush"):
                if key == "flush":
                    if case["output_mode"] != "append":
                        raise NotWritten("the input's end in another mode than append")
                    self.say("# The end of the input: a row far in the future closes what is open.")
                    for stream in case["streams"]:
                        self.feed(stream["name"], [stream["flush_row"]])
                    self.records[-1 - len(case["streams"])] += "\n" + self.records.pop(-len(case["streams"]))
                if case["output_mode"] == "batch":
                    continue
                runs, since = runs + 1, since + 1
                later = [s for s in steps[n + 1 :]]
                stop = next((m for m, s in enumerate(later) if is_action(s)), len(later))
                wanted = next(((m, s) for m, s in enumerate(later[:stop]) if "expect_new" in s), None)
                batches = next((s for s in later[:stop] if "expect_batches" in s), None)
                if wanted and since > 1:
                    raise NotWritten("new rows of several runs")
                if batches:
                    self.start()
                    for batch in batches["expect_batches"]:
                        self.say(f"step q {self.types()} rowsort", "----", *self.rows(batch))
                    self.say("step q idle")
                else:
                    self.run(what, wanted and (wanted[1]["expect_new"], wanted[1].get("ordered", False)))
                if wanted:
                    done.add(n + 1 + wanted[0])
                    since = 0
            elif key == "expect_new":
                if n not in done:
                    raise NotWritten("new rows without a run")
            elif key == "expect_all":
                self.all(what, ordered)
                since = 0
            elif key == "expect_all_alternatives":
                if self.id not in ALTERNATIVE:
                    raise NotWritten("several answers are right")
                index, why = ALTERNATIVE[self.id]
                self.say(f"# {why}")
                self.all(what[index], ordered)
                note = self.records.pop(-2)
                self.records[-1] = note + "\n" + self.records[-1]
                since = 0
            elif key == "expect_batches":
                pass
            elif key == "expect_watermark_s":
                self.start()
                if what == 0:
                    self.say(
                        "# Spark reports 0; ours is undefined while an input has not been seen (Decisions, \"Start of a watermark\").",
                        "watermark q none",
                    )
                else:
                    self.say(f"watermark q {instant(what, 'T')}Z")
            elif key == "expect_state_rows":
                self.state(what, runs)
                runs = 0
            elif key == "expect_late_rows":
                self.say("progress q", f"late_rows = {what}")
            elif key == "expect_state_operators":
                self.say("progress q", f"stateOperators.{what - 1}.name ~ .", f"stateOperators.{what} = none")
            elif key == "expect_batch_event_time_stats":
                if what is None:
                    self.say("progress q", "eventTime = none")
                else:
                    raise NotWritten("event-time figures")
            elif key == "expect_error_kind":
                self.refused(what, changed)
            elif key == "expect_query_status":
                self.say("query TTTBBT", "SHOW STATUS FOR q", "----", f"q {what.upper()} <ignore> <ignore> <ignore> <ignore>")
            elif key == "expect_file_exists":
                path, there = what
                self.command(f"test {'' if there else '! '}-e \"$__TEST_DIR__/{path}\"")
            elif key == "restart":
                if changed:
                    self.say("stop q")
                else:
                    self.start()
                    self.restart(what)
            elif key == "stop":
                self.say("stop q")
            elif key == "start":
                self.say("restart query q")
            elif key == "change_query":
                changed = what
            elif key == "advance_clock_s":
                self.say(f"clock advance {what} seconds")
            elif key == "empty_batch":
                self.start()
                self.say("statement ok", "STEP QUERY q EMPTY")
            elif key == "write_file":
                self.write_file(what)
            elif key == "make_dir":
                self.command(f'mkdir -p "$__TEST_DIR__/{what}"')
            elif key == "prepare_checkpoint":
                self.command(PREPARE.get(self.id) or "false")
            elif key == "start_second_instance":
                self.say("# Of two queries on one checkpoint the second is refused, and the first goes on.")
                self.records[-1] += "\nstatement error (?i)checkpoint"
                sql = self.start_sql().replace("QUERY q ", "QUERY second ", 1) + " CHECKPOINT 'checkpoints/q'"
                self.records[-1] += "\n" + sql
            elif key == "expect_exactly_one_instance_wins":
                self.say("step q idle")
                self.say("# A commit is there once, and the row once.", "sink q committed " + self.types(), "----", "1")
            elif key == "expect_interval_errors":
                for text in what:
                    sql = f"CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL {quoted(text)})"
                    self.say("statement error (?i)interval|unit|number|is not", sql)
            else:
                raise NotWritten(key)

    def text(self, folder):
        case, source = self.case, self.case["source"]
        self.steps(folder)
        head = [f"# {self.id}: {PROVES.get(self.id, case['feature'])}"]
        head.append(f"# From {source['project']} {source['commit'][:10]}, {source['file']}, \"{source['test']}\".")
        head += wrapped("Note: " + case["notes"]) if case.get("notes") else []
        head += wrapped("Levada: " + LEVADA[self.id]) if self.id in LEVADA else []
        head.append("# Written by ../convert.py: change that, or the case.")
        clock = CLOCK
        if "clock_starts_at_s" in self.config:
            clock = instant(self.config["clock_starts_at_s"], "T") + "Z"
        controls = [f"control clock manual {clock}"]
        if self.substitutes:
            controls.append("control substitution on")
        return "\n\n".join(["\n".join(head), "\n".join(controls), *self.records]) + "\n"


def is_action(step):
    return not next(k for k in step if k not in ("ordered", "change_streams")).startswith("expect_")


def wrapped(text, width=118):
    lines, line = [], "#"
    for word in text.split():
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = "#"
        line += " " + word
    return lines + [line]


# ----------------------------------------------------------------------------------------------------------- the folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def still_waiting(folder, texts):
    """Cases of NOT_YET that pass already."""
    binary, passed = os.environ.get("LEVADA"), []
    if not binary:
        return passed
    for case_id, (file, text, parts) in texts.items():
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / file
            write(path, text)
            for part, rows in parts.items():
                write(pathlib.Path(scratch) / "data" / part, rows)
            done = subprocess.run([binary, "test", str(path), "-j", "1"], capture_output=True, timeout=300)
            if done.returncode == 0:
                passed.append(case_id)
    return passed


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: convert.py CASES_FOLDER OUT_FOLDER")
    cases, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    table, counts, waiting = [], {}, {}
    for path in sorted(cases.glob("*/*.json")):
        case = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        project, case_id = path.parent.name, case["id"]
        file = f"{project}/{path.stem.replace('-', '_')}.slt"
        (out / file).unlink(missing_ok=True)
        written = File(case)
        try:
            text = written.text(path.parent)
        except NotWritten as reason:
            text = None
            if case_id not in NOT_YET and case_id not in NOT_EXPRESSIBLE:
                sys.exit(f"{case_id}: {reason}")
        if case_id in NOT_YET:
            status, why = "not yet", NOT_YET[case_id]
            if text:
                waiting[case_id] = (file, text, written.parts)
        elif case_id in NOT_EXPRESSIBLE:
            status, why = "not expressible", NOT_EXPRESSIBLE[case_id]
        else:
            status, why = "runs", f"[{file}]({file})"
            write(out / file, text)
            for part, rows in written.parts.items():
                write(out / "data" / part, rows)
        counts[status] = counts.get(status, 0) + 1
        table.append(f"| {case_id} | {status} | {why} |")
    write(out / "README.md", README.format(table="\n".join(table), **{k.replace(" ", "_"): v for k, v in counts.items()}))
    for case_id in still_waiting(out, waiting):
        print(f"{case_id} passes: take it off NOT_YET")
    print(", ".join(f"{n} {status}" for status, n in sorted(counts.items())))


README = """\
# Cases with right answers

Each case restates one test of another project's public suite: rows by batch, a query, and what must come out. `convert.py`
writes the files from neutral data and this page; where a figure or a query is to be changed, it is changed there. Facts and
figures only were carried over, the queries and words are ours.

| project | source | licence |
| --- | --- | --- |
| arroyo | ArroyoSystems/arroyo: smoke tests, rows of taxi rides (`data/cars_*.part`, place names removed), golden outputs | MIT or Apache-2.0 |
| feldera | feldera/feldera | MIT |
| flink | apache/flink, 1.14 | Apache-2.0 |
| materialize | MaterializeInc/materialize | facts only |
| nexmark | nexmark/nexmark (queries), risingwavelabs/risingwave (`data/bid.part`: 50 generated rows; results) | Apache-2.0 |
| risingwave | risingwavelabs/risingwave, e2e_test/streaming | Apache-2.0 |
| spark | apache/spark | Apache-2.0 |

`data/*.part` hold feeds that several cases include. `bugs/` holds public bug reports as tests, written by hand; each file names
them.

Status: {runs} run; {not_yet} wait for what they need (not yet: operator); {not_expressible} can't be said (not expressible:
why).

| case | status | file, or why not |
| --- | --- | --- |
{table}
"""

if __name__ == "__main__":
    main()
