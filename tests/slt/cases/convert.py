#!/usr/bin/env python3
"""Turns cases with right answers, kept as neutral JSON, into regression files of the product.

    convert.py CASES_FOLDER OUT_FOLDER

CASES_FOLDER holds a folder for each project the cases come from, with a JSON file for each case and a folder `data` of CSV
files. OUT_FOLDER gets `<project>/<case>.slt` for each case that can be said and whose operators exist, `data/*.part` with the
rows of data files that those cases include, and `README.md` with a table of all cases: which run, which wait for an operator,
which can't be said, and why. The same input gives the same bytes.

What is particular to the product stands in tables at the top: DIALECT and TYPES (the neutral dialect -> ours), ERRORS and SAYS (what
the message of an error must say), NOT_YET and NOT_EXPRESSIBLE (cases that are not written), PROVES and LEVADA (comments), and
the few things that a case leaves open or has in words (REFUSED_AT, HIDDEN_KEYS, ALTERNATIVE, PREPARE, INSTEAD).

With LEVADA=<binary> in the environment the cases of NOT_YET are written into a temporary folder and run (refusals apart), and
those that pass are named: they are to be taken off the list. Nothing else depends on it.
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
    # What a session is called in its SELECT.
    (r"\bsession\.(start|end)\b", r"session_window.\1"),
    # A watermark that is declared in a query stands at the end of its block.
    (r" WITH WATERMARK (\w+) DELAY ('[^']*') (GROUP BY .*)$", r" \3 WITH WATERMARK \1 DELAY \2"),
]

# Types of the neutral dialect -> ours. What is not here is written as it is, MAP<k,v> as MAP(k, v).
TYPES = {"BYTES": "BYTEA"}

# Names that are written in quotes.
RESERVED = {"first", "second", "value", "end", "start", "window"}

# Kinds of errors -> what the message must say, a regular expression without regard to case.
ERRORS = {
    "unsupported_query": r"not supported|can't|would have to",
    "unsupported_output_mode": r"OUTPUT MODE",
    "invalid_window": r"a window's (slide|length) must be",
    "watermark_type": r"a watermark needs a time",
    "watermark_redefined": r"two watermarks on one path",
    "checkpoint_incompatible": r"the query has changed.*would lose its state",
    "checkpoint_not_empty": r"checkpoint",
    "cannot_infer_schema": r"cannot infer the columns.*column list",
    "type_error": r"MAP",
    "runtime_error": r"division by zero",
}

# What the message of a case must say, where the case or its kind does not tell.
SAYS = {
    "feldera-hop-null-rejected": "a window's length must be a constant interval",
    "spark-ckpt-left-over-commits-rejected": "though commits/ beside it is not empty",
    "spark-ckpt-left-over-state-rejected": "though state/ beside it is not empty",
    "spark-core-limit-update-rejected": "LIMIT",
    "spark-dedup-within-other-stream-has-watermark-rejected": "WITHIN WATERMARK wants a watermarked time in FROM",
    "spark-unsup-sample": "TABLESAMPLE",
    "spark-unsup-sort-after-agg-update": "ORDER BY.*OUTPUT MODE COMPLETE",
    "spark-unsup-full-join-static": "Full join.*would have to keep the table's rows",
    "spark-unsup-right-join-stream-static": "Right join.*would have to keep the table's rows",
    "spark-sink-file-update-rejected": "OUTPUT MODE UPDATE",
    "spark-agg-count-append-rejected": "OUTPUT MODE APPEND can't run this aggregate",
}

# Which statement is refused, where a case leaves that open.
REFUSED_AT = {"spark-file-json-map-key-type-rejected": "start"}

# Cases of UPDATE whose result does not have every column that is grouped by: the op of a row can't be told, and is +U.
HIDDEN_KEYS = {"feldera-late-rows-reported"}

# Cases whose connectors do not exist yet -> what is missing.
NOT_YET = {
    "spark-kafka-max-offsets-per-trigger": "connector kafka",
}

# Cases whose last batch of a run is one without input, so that only totals are compared.
TOTALS_ONLY = {"spark-dedup-within-all-columns"}

# Cases that can't be said.
NOT_EXPRESSIBLE = {
    "nexmark-q104": "COMPLETE without an aggregate on top: the rows of a join are sent as they change",
    "spark-join-output-columns-changed-on-restart-rejected": "a stream that is given another column and keeps its rows",
    "materialize-now-lower-bound": "a filter by the clock over rows that are kept: a row is judged once, in its batch",
    "spark-sink-console-truncates-long-cell": "the console has no option that cuts cells; outside a terminal they are whole",
}

# Which of the answers that a case allows is ours, and by which rule.
ALTERNATIVE = {
    "risingwave-interval-24h-equals-1d-distinct": (
        1,
        "Months, days and nanoseconds are compared apart, by = and by DISTINCT.",
    ),
    "flink-dedup-last-row-by-time": (
        1,
        "Rows that are equal in the order come in the order of their columns, whatever came first.",
    ),
    "risingwave-max-of-interval-timestamp-text-date": (
        1,
        "A global aggregate has its row in every batch that runs, one without input too (rule O4).",
    ),
}

# Edits of a checkpoint that a case has in words -> a command.
PREPARE = {
    f"spark-ckpt-left-over-{what}-rejected": f'mkdir -p "$__TEST_DIR__/checkpoints/q/{what}" && echo left over > "$__TEST_DIR__/checkpoints/q/{what}/0"'
    for what in ("commits", "state")
}

# Cases whose expectation is ours instead: why, columns of the result, steps.
INSTEAD = {
    "spark-dedup-key-changed-on-restart-rejected": (
        "There the stream has another column as well, which a stream that keeps its rows is not given.",
        [["k", "STRING"], ["v", "INT"]],
        [
            {"add": {"stream": "s", "rows": [["a", 1]]}},
            {"run": True},
            {"expect_new": [["a", 1]]},
            {"add": {"stream": "s", "rows": [["a", 2], ["b", 3]]}},
            {"run": True},
            {"expect_new": [["b", 3]]},
            {"change_query": "SELECT DISTINCT ON (k, v) k, v FROM s"},
            {"restart": True},
            {"add": {"stream": "s", "rows": [["a", 5], ["b", 2], ["c", 9]]}},
            {"expect_error_kind": {"kind": "checkpoint_incompatible", "at": "start_or_run"}},
        ],
    ),
    "spark-unsup-inner-join-update": (
        "Spark refuses joins in UPDATE. Ours sends what has changed (the mode table): of an inner join, the pairs.",
        [["k", "INT"]],
        [{"add": {"stream": "a", "rows": [[1, 0]]}}, {"add": {"stream": "b", "rows": [[1, 5], [2, 5]]}}, {"run": True}, {"expect_new": [[1]]}],
    ),
    "spark-session-global-append-rejected": (
        "Spark refuses sessions without another key over a stream. Here all rows are of one key.",
        [["s0", "TIMESTAMP"], ["s1", "TIMESTAMP"], ["n", "BIGINT"], ["total", "BIGINT"]],
        [
            {"add": {"stream": "s", "rows": [[40, 40], [2, 44]]}},
            {"run": True},
            {"add": {"stream": "s", "rows": [[1, 60]]}},
            {"run": True},
            {"expect_all": [[40, 49, 2, 42]]},
        ],
    ),
    "spark-unsup-sort-before-agg-complete": (
        "Spark refuses a sort below an aggregate. It changes nothing that the aggregate sees, so it is left out here, and the "
        "count must be right, as the case allows.",
        [["n", "BIGINT"]],
        [{"add": {"stream": "a", "rows": [[3], [1], [2]]}}, {"run": True}, {"expect_all": [[3]]}],
    ),
}

# Where our answer is not Spark's or the source's, or stands on a rule of ours.
LEVADA = {
    "feldera-late-rows-reported": "the window that is grouped by is not a column of the result, so a change can't be told from "
    "a new row: op is always +U. Late rows are counted as rows (semantics, Decisions: late rows).",
    "spark-join-left-semi-range": "a row that has found its partner is not remembered any longer, so what is remembered is not counted here.",
    "spark-agg-count-distinct-of-list": "exact DISTINCT aggregates are allowed (semantics, Decisions), so the query says so.",
    "spark-core-limit-update-rejected": "LIMIT without ORDER BY is for APPEND only (semantics, the table of modes).",
    "spark-file-json-map-key-type-rejected": "whether a format can be read as the types is checked by START (SQL reference, "
    "CREATE STREAM).",
    "spark-file-partition-dirs-with-glob": "folders make no columns unless a file sink wrote them (SQL reference, file source).",
    "spark-unsup-except-streams": "a set difference of streams is not in the language.",
}

# Public bug reports, which are written by hand: subject -> file in bugs/, or what is missing.
BUGS = [
    ("one row dated in the future freezes the query", "watermark"),
    ("NULL or unparsable event time stops the job", "watermark"),
    ("time zone and summer time in day and hour windows", "watermark"),
    ("watermark of an input that has no rows", "watermark"),
    ("late test and watermark after a restore", "watermark"),
    ("times beyond 64-bit nanoseconds", "watermark"),
    ("touching and bridging sessions", "window"),
    ("a query on top of another query gives no output", "window"),
    ("month-long windows and delays", "window"),
    ("an integer sum wraps", "aggregate"),
    ("COUNT(DISTINCT) wrong in incremental state", "aggregate"),
    ("one failing row takes others with it", "aggregate"),
    ("an outer join emits a NULL row for a pair that did match", "join"),
    ("NULL join keys", "join"),
    ("integers above 2^53 lose digits", "json"),
    ("a field of the wrong type", "json"),
    ("field names that differ in case, or appear twice", "json"),
    ("a file that is one JSON array or pretty-printed", "json"),
    ("too few or too many columns, blank lines", "csv"),
    ("gzip: several members, a cut file, a wrong suffix", "file"),
    ("the last line is still being written", "file"),
    ("order of files with equal modification times", "file"),
    ("partition folders", "file"),
    ("a schema or path that has nothing yet", "file"),
    ("gaps in offsets of a topic", "not yet: connector kafka"),
    ("new partitions and topics while running", "not yet: connector kafka"),
    ("two processes on one checkpoint, a stale lock", "checkpoint"),
    ("a changed query on an old checkpoint", "checkpoint"),
    ("disk full", "checkpoint"),
    ("status says running although checkpoints fail", "checkpoint"),
    ("a reader sees half-written output", "sink"),
    ("duplicates after a lost connection", "not yet: targets that are databases"),
    ("comments", "shell"),
    ("exit code on error", "shell"),
    ("wide, combining and control characters, huge cells", "shell"),
    ("case of identifiers", "sql"),
    ("numbers: LIMIT, exponents, large literals", "sql"),
]

# What a case proves, and by which rule.
PROVES = {
    "feldera-session-late-and-on-watermark": "a row is late by the end of the session that it would open (S4)",
    "flink-session-5ms-out-of-order": "a row that makes two sessions one, with averages and DISTINCT counts",
    "spark-session-append": "the whole of trace G6: late rows, a bridge, and what the watermark closes (S1, S4)",
    "spark-session-append-dynamic-gap": "a gap of each row; rows whose gap is not above zero vanish (S2)",
    "spark-session-batch-keys-distinct": "sessions of each key, with a DISTINCT sum, as a batch",
    "spark-session-batch-one-row": "a session of one row, as a batch",
    "spark-session-global-append-rejected": "sessions of all rows together, which Spark refuses (S3)",
    "arroyo-cars-hourly-by-event": "tumbling windows over rows that come out of order; each window once, when it closes (L1)",
    "arroyo-hop-2s-10s": "each row counts in every window that holds it, before the first full one and after the last (B2)",
    "arroyo-unnest-array-agg-view": "lists that an aggregate made, taken apart again above it",
    "feldera-count-per-key": "without input no batch and no row; then a count by key",
    "feldera-hop-null-rejected": "a window without a size is refused",
    "feldera-late-rows-reported": "rows of a closed day are dropped and counted in the batch's progress (L1, L2)",
    "feldera-tumble-offset-limits": "windows that do not start at the full hour; a row on the border opens the next one (B1, B2)",
    "flink-hop-12h-1d-negative-offset": "sliding windows with an offset below zero (B2, B3)",
    "flink-hop-5ms-4ms": "windows whose size is no multiple of the slide: rows are in one or two of them (B2)",
    "flink-hop-5s-10s": "a row that is late for one window still counts in another that is open",
    "flink-tumble-5s-window-only": "a row whose window has closed is left out of every figure (L1)",
    "flink-tumble-day-offset": "day windows that start at eight; lateness is that of the window, not of the row (L4)",
    "nexmark-q10": "a projection with formatted times, the same in batches of any size (law 3)",
    "nexmark-q14": "exact DECIMAL arithmetic, CASE, text functions and a filter",
    "risingwave-aggregate-filter": "FILTER belongs to one aggregate, not to the query",
    "risingwave-avg-filter-false": "an aggregate whose FILTER lets no row pass is NULL, and the group is there",
    "risingwave-bad-cast-coalesced": "TRY_CAST of what is no number is NULL and touches no other row",
    "risingwave-click-through-per-minute": "joins of windowed aggregates, as a batch; 64-bit ids are never read through a float",
    "risingwave-count-distinct-and-max": "a value that a later batch repeats is not counted again",
    "risingwave-decimal-keys-special": "NaN and the infinities are groups of their own",
    "risingwave-float-keys-nan-and-negative-zero": "+0 and -0 are one group, and so are all NaN (semantics, \"Input order\")",
    "risingwave-hop-bad-size-1-rejected": "a slide of zero is refused (B4)",
    "risingwave-hop-bad-size-3-rejected": "a slide below zero is refused (B4)",
    "risingwave-hop-one-day-two-days": "two batches in sliding windows of days",
    "risingwave-hop-rows": "a row for each window of each row, without an aggregate",
    "risingwave-hop-sum": "sums over sliding windows",
    "risingwave-max-of-interval-timestamp-text-date": "least and greatest of times, texts and dates, first over no row at all",
    "risingwave-tumble-rows": "the window of each row, without an aggregate",
    "risingwave-two-count-distincts": "two DISTINCT counts of one query do not mix",
    "risingwave-watermark-type-mismatch-rejected": "a watermark on a number is refused (W11)",
    "spark-agg-changed-aggregates-on-same-checkpoint": "other aggregates on an old checkpoint are refused, with both states named",
    "spark-agg-count-append-rejected": "groups that are never final are refused in APPEND",
    "spark-agg-count-distinct-of-list": "a DISTINCT count over the elements of a list",
    "spark-agg-multiple-keys": "two keys, one of them computed; UPDATE sends changed groups only",
    "spark-agg-now-uses-batch-time": "the time of a batch is in the log: run again after a loss, it is the same (P1, P2)",
    "spark-agg-progress-metrics-complete": "what progress says of the state in COMPLETE (M4)",
    "spark-agg-progress-metrics-update": "what progress says of the state in UPDATE (M4)",
    "spark-agg-state-metrics-complete": "updated counts the groups that a batch touched, total all of them (M4)",
    "spark-always-false-filter-keeps-state-operator": "a filter that lets nothing pass does not take the operator's state away",
    "spark-ckpt-left-over-commits-rejected": "commits without offsets are no new checkpoint",
    "spark-ckpt-left-over-state-rejected": "state without offsets is no new checkpoint",
    "spark-ckpt-special-characters-in-path": "a checkpoint's path may hold blanks, @ and #",
    "spark-ckpt-two-writers": "one query at a time uses a checkpoint",
    "spark-core-limit-static-side": "LIMIT over a table is that table's, in every batch anew",
    "spark-core-limit-update-rejected": "LIMIT in UPDATE is refused",
    "spark-core-replay-uncommitted-batch": "a batch without commit is run again with the same rows; a failing one fails the query (P1)",
    "spark-core-stream-static-join": "an inner join with a table, row by row",
    "spark-file-available-now-honours-rate": "ONCE takes all that is there, AVAILABLE NOW keeps to the limit and ends (T2, T3)",
    "spark-file-json-infer-empty-dir-rejected": "no column can be inferred from a folder without records",
    "spark-file-json-map-key-type-rejected": "JSON has no map whose keys are numbers",
    "spark-file-json-restart": "after a stop only new files are read",
    "spark-file-latest-first": "latest_first takes the newest file first (X4)",
    "spark-file-max-files-per-trigger": "files by modification time, so many a batch (X4)",
    "spark-file-missing-path-rejected": "a path that is not there is named",
    "spark-file-partition-dirs-with-glob": "folders named key=value below a glob",
    "spark-file-special-character-in-name-1": "a blank in a file's name",
    "spark-file-special-character-in-name-2": "a bracket in a file's name is no pattern",
    "spark-file-special-character-in-name-3": "a pair of brackets in a file's name is no pattern",
    "spark-sink-file-update-rejected": "files can't take changed rows back (O5)",
    "spark-union-then-static-join-null-literal": "a branch whose key is NULL joins nothing, and stays a branch of its own",
    "spark-unsup-except-streams": "EXCEPT of two streams is refused",
    "spark-unsup-full-join-static": "a full join with a table is refused (J12)",
    "spark-unsup-right-join-stream-static": "a join that keeps the table's rows is refused (J12)",
    "spark-unsup-sample": "TABLESAMPLE is refused (O2)",
    "spark-unsup-sort-after-agg-update": "ORDER BY over changing groups is refused (O2)",
    "spark-unsup-sort-before-agg-complete": "a sort below an aggregate changes nothing",
    "spark-window-tumbling-at-start": "a row on a window's start is in it (B1)",
    "spark-window-tumbling-negative-offset": "an offset below zero (B2, B3)",
    "spark-wm-available-now-after-restart": "the watermark outlives restarts: what it closes is given out once (W4, W6)",
    "spark-wm-input-pruned-from-plan-does-not-advance": "an input without rows holds the minimum; then the slowest one does (W3)",
    "spark-wm-interval-spellings-invalid": "spellings of intervals that are refused",
    "spark-wm-metrics-complete-without-watermark": "without a watermark progress has no figures of event time (M3)",
    "spark-wm-nodata-flag-off": "without no-data batches a window waits for the next input (N1)",
    "spark-wm-nodata-flag-on": "a batch without input gives out what the watermark closed (N1)",
    "spark-wm-policy-bad-value-empty": "an unknown watermark policy is refused, with those that there are",
    "spark-wm-policy-from-checkpoint-wins": "the checkpoint's watermark policy wins over the setting (W7)",
    "spark-wm-redefine-rejected": "a second watermark on one path is refused (W9)",
    "spark-wm-unknown-column": "a watermark on a column that is not there is refused, with its name",
    "spark-wm-window-alias-keeps-watermark": "a window that was given a name in a subquery keeps its watermark (W10)",
}

# Cases whose rows do not depend on where batches end, beside all of Flink: run again with feeds cut in batches of so many rows.
ANY_BATCHES = {"arroyo-hop-2s-10s": "7,50", "arroyo-unnest-array-agg-view": "7,50"}

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


def kind(text):
    """A type as ours."""
    pair = re.fullmatch(r"MAP<(.*),(.*)>", text)
    return f"MAP({pair[1]}, {pair[2]})" if pair else TYPES.get(text, text)


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
        self.notes = []
        self.started = False
        self.cleared = False
        if self.id in INSTEAD:
            case["result_columns"], case["steps"] = INSTEAD[self.id][1:]
            LEVADA.setdefault(self.id, INSTEAD[self.id][0])
        self.query = self.ours(case["query_sql"])
        self.columns = case["result_columns"] or []
        self.config = case.get("config") or {}
        self.streams = {s["name"]: s for s in case["streams"]}
        self.append = case["output_mode"] in ("append", "batch")
        self.seen = set()
        self.parts = {}
        self.files = 0
        texts = json.dumps(case["steps"], default=str)
        self.substitutes = "sink" in self.config or any("source" in s for s in case["streams"]) or any(
            word in texts for word in ("write_file", "make_dir", "lose_", "prepare_checkpoint", "expect_file_exists")
        )
        runs = [s["run"] for s in case["steps"] if "run" in s and isinstance(s["run"], dict)]
        self.no_data = all(r.get("no_data_batches", True) for r in runs) or not runs

    def batch_sizes(self):
        """Of how many rows the batches are, in which the case is run again."""
        # What is sent in COMPLETE is another in each batch.
        flink = self.id.startswith("flink-") and self.case["output_mode"] != "complete"
        return ANY_BATCHES.get(self.id, "1,2" if flink else None)

    @staticmethod
    def ours(query):
        for pattern, instead in DIALECT if query else []:
            query = re.sub(pattern, instead, query)
        return query

    def say(self, *lines):
        self.records.append("\n".join(self.notes + list(lines)))
        self.notes = []

    def note(self, text):
        """A comment above the next record."""
        self.notes += wrapped(text)

    # ---- what is created

    def create(self, stream, refused=None):
        source = stream.get("source")
        columns = [f"{name(c)} {kind(t)}" for c, t in stream["columns"]]
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
        sink = self.config.get("sink")
        if sink and sink["format"] != "console":
            self.say("statement ok", f"CREATE SINK out WITH (connector = 'file', format = '{sink['format']}', path = '$__TEST_DIR__/{sink['path']}')")
        for table in self.case["static_tables"]:
            columns = ", ".join(f"{name(c)} {kind(t)}" for c, t in table["columns"])
            self.say("statement ok", f"CREATE TABLE {name(table['name'])} ({columns})")
            if table["rows"]:
                self.say("statement ok", f"INSERT INTO {name(table['name'])} VALUES " + self.values(table, table["rows"]))

    def start_sql(self, query=None, trigger=None):
        into = "INTO out " if "sink" in self.config else ""
        sql = f"START QUERY q {into}AS {query or self.query}"
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
                cells.insert(0, "+U" if key in self.seen or self.id in HIDDEN_KEYS else "+I")
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
        # Where no row came there may be no last batch.
        which = "last" if self.case["output_mode"] == "complete" and rows else "all"
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
            origin = wrapped(f"Rows of {self.case['source']['project']}; see ../README.md. Written by ../convert.py.")
            self.parts[file] = "\n".join([*origin, "", *parts[n : n + each]])
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
                if key == "source_partitions":
                    self.note("A memory stream has no partitions that could become more.")
                else:
                    self.say("statement ok", f"SET {key} = '{value}'")
            return self.say("restart engine")
        self.cleared = how.get("clear_sink", False)
        self.say("stop q")
        if how.get("lose_last_commit"):
            commits = '"$__TEST_DIR__/checkpoints/q/commits"'
            self.command(f"cd {commits} && rm \"$(ls | sort -n | tail -n 1)\"")
        if how.get("advance_clock_s"):
            self.say(f"clock advance {how['advance_clock_s']} seconds")
        self.say("restart query q")

    def refused(self, what, changed):
        at = REFUSED_AT.get(self.id, what["at"])
        said = SAYS.get(self.id) or ".*".join(re.escape(word) for word in what.get("message_should_name", []))
        pattern = "(?is)" + (said or ERRORS[what["kind"]])
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
        if "per_operator" in wanted:
            return self.state_of_operators(wanted["per_operator"], runs)
        if self.case["feature"].startswith("join."):
            # A row that is judged counts as written once more when it finds a partner, and one that needs none any more is
            # forgotten at once.
            if "semi" in self.case["feature"] or "total_alternatives" in wanted:
                return
            wanted = {"total": wanted["total"]}
        # Dropped rows are those of the last run: a case that means others too shows itself by failing.
        if runs != 1 and not set(wanted) <= {"total", "dropped_by_watermark"}:
            raise NotWritten("state counts over several runs")
        if set(wanted) - {"total", "updated", "removed", "dropped_by_watermark"}:
            raise NotWritten("several state counts that are right")
        if self.id in TOTALS_ONLY:
            wanted = {"total": wanted["total"]}
        keys = {"total": "rows", "updated": "updated", "removed": "removed", "dropped_by_watermark": "dropped_late"}
        self.say("progress q", *[f"state.{keys[k]} = {v}" for k, v in wanted.items()])

    def state_of_operators(self, wanted, runs):
        """Counts of each operator, that which is nearest the sink first."""
        keys = {"total": "numRowsTotal", "updated": "numRowsUpdated"}
        lines = []
        for key, counts in wanted.items():
            if key == "dropped_by_watermark_last_data_batch":
                if any(counts):
                    self.note("Late rows are counted as rows, not as what is left of them behind a partial aggregation.")
                continue
            if key not in keys or (key != "total" and runs != 1):
                raise NotWritten("state counts by operator")
            lines += [f"stateOperators.{n}.{keys[key]} = {count}" for n, count in enumerate(counts)]
        if lines:
            self.say("progress q", *lines)

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
        if self.batch_sizes():
            # Rows that are fed before the query starts would all be one batch.
            self.start()
        changed, runs, since = None, 0, 0
        triggers = any(isinstance(s.get("run"), dict) and s["run"].get("trigger") for s in steps)
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
                    self.note("The end of the input: a row far in the future closes what is open.")
                    for stream in case["streams"]:
                        self.feed(stream["name"], [stream["flush_row"]])
                if case["output_mode"] == "batch":
                    continue
                runs, since = runs + 1, since + 1
                later = [s for s in steps[n + 1 :]]
                stop = next((m for m, s in enumerate(later) if is_action(s)), len(later))
                wanted = next(((m, s) for m, s in enumerate(later[:stop]) if "expect_new" in s), None)
                batches = next((s for s in later[:stop] if "expect_batches" in s), None)
                if self.cleared and not wanted:
                    # The sink was emptied: what the batches give out now is all.
                    wanted = next(((m, s) for m, s in enumerate(later[:stop]) if "expect_all" in s), None)
                    if wanted:
                        wanted = wanted[0], {"expect_new": wanted[1]["expect_all"]}
                self.cleared = False
                if wanted and since > 1:
                    raise NotWritten("new rows of several runs")
                trigger = what.get("trigger") if isinstance(what, dict) else None
                if trigger:
                    self.say("statement ok", self.start_sql(trigger=trigger.replace("_", " ").upper()))
                    for batch in batches["expect_batches"]:
                        self.say(f"step q {self.types()} rowsort", "----", *self.rows(batch))
                    if trigger == "available_now":
                        self.say("step q idle")
                    self.note("The query ends by itself.")
                    self.say("statement ok", "AWAIT QUERY q TERMINATION")
                elif batches:
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
            elif key == "expect_all" and n in done:
                pass
            elif key == "expect_all":
                self.all(what, ordered)
                since = 0
            elif key == "expect_all_alternatives":
                if self.id not in ALTERNATIVE:
                    raise NotWritten("several answers are right")
                index, why = ALTERNATIVE[self.id]
                self.note(why)
                self.all(what[index], ordered)
                since = 0
            elif key == "expect_batches":
                pass
            elif key == "expect_watermark_s":
                self.start()
                if what == 0:
                    self.note('Spark reports 0; ours is undefined while an input was not seen (semantics, Decisions: "Start of a watermark").')
                    self.say("watermark q none")
                else:
                    self.say(f"watermark q {instant(what, 'T')}Z")
            elif key == "expect_state_rows":
                self.state(what, runs)
                runs = 0
            elif key == "expect_state_contents":
                # Columns and order are ours; how much there is, is not.
                self.say("progress q", f"state.rows = {sum(len(rows) for rows in what.values())}")
            elif key == "expect_late_rows":
                self.say("progress q", f"late_rows = {what}")
            elif key == "expect_dropped_duplicates":
                self.say("progress q", f"stateOperators.0.customMetrics.numDroppedDuplicateRows = {what}")
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
                elif not triggers:
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
                self.note("Of two queries on one checkpoint the second is refused, by name, and the first goes on.")
                sql = self.start_sql().replace("QUERY q ", "QUERY second ", 1) + " CHECKPOINT 'checkpoints/q'"
                self.say("statement error checkpoint .*in use by another query", sql)
            elif key == "expect_exactly_one_instance_wins":
                self.say("step q idle")
                self.say("sink q committed " + self.types(), "----", "1")
            elif key == "expect_interval_errors":
                for text in what:
                    sql = f"CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL {quoted(text)})"
                    self.say("statement error (?i)interval", sql)
            else:
                raise NotWritten(key)

    def text(self, folder):
        case, source = self.case, self.case["source"]
        self.steps(folder)
        head = wrapped(f"{self.id}: {PROVES.get(self.id, case['feature'])}.")
        head += wrapped(f"From {source['project']} {source['commit'][:10]}, {source['file']}, \"{source['test']}\".")
        head += wrapped("Note: " + case["notes"]) if case.get("notes") else []
        head += wrapped("Levada: " + LEVADA[self.id]) if self.id in LEVADA else []
        head.append("# Written by ../convert.py: change that, or the case.")
        clock = CLOCK
        if "clock_starts_at_s" in self.config:
            clock = instant(self.config["clock_starts_at_s"], "T") + "Z"
        controls = [f"control clock manual {clock}"]
        if self.substitutes:
            controls.append("control substitution on")
        records = self.records
        if self.batch_sizes():
            created = sum(record.startswith("statement ok\nCREATE") for record in records)
            made, rest = records[:created], records[created:]
            records = [*made, "scenario any_batches", *rest, "end", f"matrix batch_rows={self.batch_sizes()}"]
        return "\n\n".join(["\n".join(head), "\n".join(controls), *records]) + "\n"


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
            # What is to be refused is refused already, for another reason.
            if text and "error" not in case["tags"]:
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
    bugs = []
    for subject, where in BUGS:
        file, _, rest = where.partition("; ")
        file = f"[bugs/{file}.slt](bugs/{file}.slt)" if not file.startswith("not yet") else file.partition(": ")[2]
        status = "not yet" if where.startswith("not yet") else "runs"
        bugs.append(f"| {subject} | {status} | {file + ('; ' + rest if rest else '')} |")
    write(out / "README.md", README.format(table="\n".join(table), bugs="\n".join(bugs), **{k.replace(" ", "_"): v for k, v in counts.items()}))
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

Status: {runs} run; {not_yet} waits for what it needs (not yet: connector); {not_expressible} can't be said (not expressible:
why).

| case | status | file, or why not |
| --- | --- | --- |
{table}

## Bug reports

| subject | status | file, or why not |
| --- | --- | --- |
{bugs}
"""

if __name__ == "__main__":
    main()
