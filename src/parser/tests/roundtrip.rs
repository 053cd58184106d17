//! Property: the text of any statement parses to the same statement.

use proptest::prelude::*;

use super::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_][a-z0-9_]{0,6}".prop_map(|name| format!("\"{name}\"")),
        "[a-zA-Z_][a-zA-Z0-9_]{1,6}x",
        "[ -~é本]{1,8}".prop_map(|name| format!("\"{}\"", name.replace('"', "\"\""))),
        prop::sample::select(vec!["watermark", "output", "mode", "trigger", "window", "offset", "console1", "\"all\""])
            .prop_map(str::to_string),
    ]
}

fn text() -> impl Strategy<Value = String> {
    "[ -~é本\n;]{1,10}".prop_map(|text| format!("'{}'", text.replace('\'', "''")))
}

fn interval() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec![
        "microsecond",
        "millisecond",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "year",
    ]);
    (0u32..100_000, unit, 0u8..3).prop_map(|(n, unit, spelling)| match spelling {
        0 => format!("'{n} {unit}s'"),
        1 => format!("INTERVAL '{n}' {unit}"),
        _ => format!("INTERVAL {n} {unit}s"),
    })
}

fn options() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        text(),
        (-1000i32..1000).prop_map(|n| n.to_string()),
        any::<bool>().prop_map(|b| b.to_string()),
        (0.0f64..9.0).prop_map(|n| format!("{n:.3}"))
    ];
    prop::collection::vec(value, 1..4).prop_map(|values| {
        let entries: Vec<String> = values.iter().enumerate().map(|(n, value)| format!("option{n} = {value}")).collect();
        format!("({})", entries.join(", "))
    })
}

fn expr() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![name(), text(), (0u32..99).prop_map(|n| n.to_string()), Just("NULL".to_string())];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "=", "<>", "AND", "OR", "||", "LIKE"]), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            inner.clone().prop_map(|a| format!("coalesce({a}, 1)")),
            inner.clone().prop_map(|a| format!("CAST({a} AS TEXT)")),
            inner.clone().prop_map(|a| format!("{a} IS NOT NULL")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("CASE WHEN {a} THEN {b} ELSE - 1 END")),
        ]
    })
}

fn query() -> impl Strategy<Value = String> {
    (
        prop::collection::vec(expr(), 1..3),
        name(),
        prop::option::of(expr()),
        prop::option::of((name(), interval())),
        prop::option::of((name(), interval())),
        prop::option::of(1u32..9),
        any::<bool>(),
    )
        .prop_map(|(columns, table, filter, watermark, spark, limit, union)| {
            let mut sql = format!("SELECT {} FROM {table}", columns.join(", "));
            if let Some((column, delay)) = spark {
                sql += &format!(" WATERMARK {column} DELAY OF {delay} AS x");
            }
            if let Some(filter) = filter {
                sql += &format!(" WHERE {filter}");
            }
            if let Some((column, delay)) = watermark {
                sql += &format!(" WITH WATERMARK {column} DELAY {delay}");
            }
            if union {
                sql = format!("{sql} UNION ALL SELECT DISTINCT ON (a) WITHIN WATERMARK a FROM b");
            }
            match limit {
                Some(limit) => format!("{sql} ORDER BY 1 LIMIT {limit}"),
                None => sql,
            }
        })
}

fn column() -> impl Strategy<Value = String> {
    let data_type = prop::sample::select(vec![
        "INT",
        "BIGINT",
        "TEXT",
        "VARCHAR(10)",
        "DOUBLE",
        "TIMESTAMP",
        "TIMESTAMP(9)",
        "TIMESTAMP WITH TIME ZONE",
        "DATE",
        "DECIMAL(10,2)",
        "BOOLEAN",
        "INT[]",
        "STRUCT<a INT, b TEXT>",
        "ARRAY<ARRAY<INT>>",
        "BYTEA",
    ]);
    let kind = prop_oneof![
        Just(String::new()),
        Just(" NOT NULL".to_string()),
        text().prop_map(|key| format!(" METADATA FROM {key}")),
        expr().prop_map(|expr| format!(" AS ({expr})")),
    ];
    prop_oneof![
        (data_type, kind).prop_map(|(data_type, kind)| format!("{data_type}{kind}")),
        expr().prop_map(|expr| format!("AS ({expr})")),
    ]
}

fn create_stream() -> impl Strategy<Value = String> {
    (
        name(),
        prop::collection::vec(column(), 0..5),
        prop::option::of((name(), interval(), prop::option::of(interval()), prop::option::of(interval()))),
        prop::option::of(options()),
    )
        .prop_map(|(name, columns, watermark, options)| {
            let mut elements: Vec<String> =
                columns.iter().enumerate().map(|(n, column)| format!("column{n} {column}")).collect();
            if let Some((column, delay, idle, skew)) = watermark {
                let idle = idle.map(|i| format!(" IDLE AFTER {i}")).unwrap_or_default();
                let skew = skew.map(|i| format!(" MAX FUTURE SKEW {i}")).unwrap_or_default();
                elements
                    .insert(elements.len() / 2, format!("WATERMARK FOR {column} AS {column} - {delay}{skew}{idle}"));
            }
            let list = if elements.is_empty() { String::new() } else { format!(" ({})", elements.join(", ")) };
            let options = options.map(|o| format!(" WITH {o}")).unwrap_or_default();
            format!("CREATE STREAM {name}{list}{options}")
        })
}

fn trigger() -> impl Strategy<Value = String> {
    prop_oneof![
        (1u32..100_000, prop::sample::select(vec!["millisecond", "second", "minute", "hour", "day", "week"]))
            .prop_map(|(n, unit)| format!("TRIGGER EVERY '{n} {unit}s'")),
        interval().prop_map(|i| format!("TRIGGER CONTINUOUS {i}")),
        prop::sample::select(vec!["TRIGGER ONCE", "TRIGGER AVAILABLE NOW", "TRIGGER MANUAL"]).prop_map(str::to_string),
    ]
}

fn start_query() -> impl Strategy<Value = String> {
    let target = prop_oneof![
        Just(String::new()),
        Just("INTO CONSOLE ".to_string()),
        name().prop_map(|name| format!("INTO TABLE {name} ")),
        name().prop_map(|name| format!("INTO {name} "))
    ];
    let clauses = (
        prop::option::of(prop::sample::select(vec![
            "OUTPUT MODE APPEND",
            "OUTPUT MODE UPDATE",
            "OUTPUT MODE COMPLETE",
        ])),
        prop::option::of(trigger()),
        prop::option::of((1u64..u64::MAX).prop_map(|n| format!("STOP AFTER {n} BATCHES"))),
        prop::option::of(text().prop_map(|text| format!("CHECKPOINT {text}"))),
        prop::option::of(options().prop_map(|options| format!("WITH {options}"))),
    );
    let clauses = clauses
        .prop_map(|(mode, trigger, stop, checkpoint, options)| {
            [mode.map(str::to_string), trigger, stop, checkpoint, options].into_iter().flatten().collect::<Vec<_>>()
        })
        .prop_shuffle();
    (name(), target, query(), clauses).prop_map(|(name, target, query, clauses)| {
        format!("START QUERY {name} {target}AS {query} {}", clauses.join(" "))
    })
}

fn small() -> impl Strategy<Value = String> {
    let timeout = prop::option::of(interval()).prop_map(|i| i.map(|i| format!(" TIMEOUT {i}")).unwrap_or_default());
    let how = prop::sample::select(vec!["", " NOW", " DRAIN", " WHEN IDLE", " AFTER 7 BATCHES"]);
    let until = prop::sample::select(vec!["", " IDLE", " TERMINATION", " BATCH 18446744073709551615", " 2 BATCHES"]);
    prop_oneof![
        (name(), how, timeout).prop_map(|(name, how, timeout)| format!("STOP QUERY {name}{how}{timeout}")),
        (name(), until, prop::option::of(interval())).prop_map(|(name, until, timeout)| format!(
            "AWAIT QUERY {name}{until}{}",
            timeout.map(|i| format!(" TIMEOUT {i}")).unwrap_or_default()
        )),
        (name(), trigger()).prop_map(|(name, trigger)| format!("ALTER QUERY {name} SET {trigger}")),
        (name(), options()).prop_map(|(name, options)| format!("CREATE SINK {name} WITH {options}")),
        (name(), name(), query()).prop_map(|(name, column, query)| format!("CREATE VIEW {name} ({column}) AS {query}")),
        query().prop_map(|query| format!("WATCH {query}")),
        query().prop_map(|query| format!("EXPLAIN STATE {query}")),
        query(),
        (name(), name(), text())
            .prop_filter("a dot would be another part", |(a, b, _)| !(a.contains('.') || b.contains('.')))
            .prop_map(|(a, b, text)| format!("SET {a}.{b} = {text}")),
        name().prop_map(|name| format!("DROP QUERY IF EXISTS {name}")),
        name().prop_map(|name| format!("WATCH {name} LIMIT 3")),
        interval().prop_map(|interval| format!("ADVANCE CLOCK BY {interval}")),
        (-9_000_000_000_000i64..9_000_000_000_000)
            .prop_map(|ms| { Statement::AdvanceClock(ClockMove::To(ms)).to_string() }),
        (name(), text(), 0u64..9).prop_map(|(name, point, n)| format!("CRASH QUERY {name} AT {point} AS torn {n}")),
    ]
}

/// The beginning of a statement and words of the language in any order.
fn words() -> impl Strategy<Value = String> {
    let head = prop::sample::select(vec![
        "CREATE STREAM s (",
        "CREATE STREAM s",
        "CREATE VIEW v AS",
        "START QUERY q AS SELECT a FROM s",
        "START QUERY q AS",
        "STOP QUERY q",
        "AWAIT QUERY q",
        "WATCH",
        "SHOW",
        "EXPLAIN",
        "SET a",
        "SELECT a FROM s",
        "SELECT",
        "WITH",
        "INSERT INTO t",
        "FROM s",
        "SELECT DISTINCT ON (a)",
        "SELECT * FROM SESSION(",
        "SELECT * FROM TABLE(TUMBLE(",
        "",
    ]);
    let word = prop::sample::select(vec![
        "SELECT",
        "a",
        "s",
        "FROM",
        "WHERE",
        "GROUP",
        "BY",
        "ORDER",
        "LIMIT",
        "WITH",
        "WATERMARK",
        "DELAY",
        "OF",
        "AS",
        "INTERVAL",
        "'1 s'",
        "1",
        "SECONDS",
        "(",
        ")",
        ",",
        ".",
        "=",
        "-",
        "*",
        "OUTPUT",
        "MODE",
        "UPDATE",
        "TRIGGER",
        "ONCE",
        "EVERY",
        "STOP",
        "AFTER",
        "BATCHES",
        "CHECKPOINT",
        "WITHIN",
        "DISTINCT",
        "ON",
        "UNION",
        "ALL",
        "JOIN",
        "TABLE",
        "TUMBLE",
        "SESSION",
        "PARTITION",
        "DESCRIPTOR",
        "window",
        "ts",
        "NOT",
        "NULL",
        "METADATA",
        "FOR",
        "IN",
        "VALUES",
        "QUERY",
        "CASE",
        "WHEN",
        "END",
        "INT",
        "TRUE",
        "=>",
        "::",
        "[",
        "]",
        "IDLE",
        "TIMEOUT",
        "EXCEPT",
        "LATERAL",
    ]);
    (head, prop::collection::vec(word, 0..12)).prop_map(|(head, words)| format!("{head} {}", words.join(" ")))
}

proptest! {
    #![proptest_config(fixed(300))]

    #[test]
    fn streams(text in create_stream()) {
        canonical(&text);
    }

    #[test]
    fn started_queries(text in start_query()) {
        canonical(&text);
    }

    #[test]
    fn other_statements(text in small()) {
        canonical(&text);
    }

    /// Whatever words follow each other: a statement with a text of its own, or a complaint with a place in the text.
    #[test]
    fn any_words(text in words()) {
        match parse_one(&text, START) {
            Ok(statement) if statement.statement != Statement::DataFusion => _ = canonical(&text),
            Ok(_) => {}
            Err(error) => {
                let place = error.span().map(|span| span.start);
                let end = Location { line: 1, column: text.chars().count() as u64 + 1 };
                prop_assert!(place.is_some_and(|place| place >= START && place <= end), "{}: {:?}", text, error);
            }
        }
    }

    /// Every interval has a text, and it is read as the same interval.
    #[test]
    fn intervals(months in any::<i32>(), micros in any::<i64>()) {
        let interval = Interval { months, micros };
        prop_assert_eq!(Interval::parse(&interval.to_string()).unwrap(), interval);
    }
}

#[test]
fn spellings_of_intervals() {
    for (text, micros) in [
        ("10 seconds", 10_000_000),
        ("10s", 10_000_000),
        ("1.5 s", 1_500_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1h30m", 5_400_000_000),
        ("1 hour, 30 min", 5_400_000_000),
        ("01:30:00.5", 5_400_500_000),
        ("-1 day 02:00", -86_400_000_000 + 7_200_000_000),
        ("7 µs", 7),
        ("0.000001 seconds", 1),
        (" 2  WEEKS ", 1_209_600_000_000),
        ("-9223372036854775808 microseconds", i64::MIN),
        ("9223372036854775807 microseconds", i64::MAX),
    ] {
        assert_eq!(Interval::parse(text).unwrap(), Interval { months: 0, micros }, "{text}");
    }
    assert_eq!(Interval::parse("1 year 2 months").unwrap(), Interval { months: 14, micros: 0 });
    assert_eq!(Interval::parse("0.5 years").unwrap(), Interval { months: 6, micros: 0 });
    for text in [
        "",
        " ",
        "10",
        "seconds",
        "1 s 2",
        "1..5 s",
        "0.0000001 s",
        "1 ns",
        "1.5 months",
        "1:60",
        "1:2:3:4",
        "9223372036854775808 us",
        "999999999999999999999 days",
        "- 1 s",
        "1 s;",
    ] {
        assert!(Interval::parse(text).is_err(), "{text}");
    }
}
