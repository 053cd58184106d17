//! Queries: what is cut out of them, where it belongs, and what sqlparser sees.

use super::*;

fn query(text: &str) -> QueryText {
    match parsed(text) {
        Statement::Select(query) => *query,
        Statement::StartQuery(start) => start.query,
        other => panic!("{other:?}"),
    }
}

/// What sqlparser made of it.
fn sql(text: &str) -> String {
    query(text).ast.to_string()
}

#[test]
fn plain_sql_passes() {
    for text in [
        "SELECT 1",
        "SELECT a, b AS c FROM s WHERE a = 1 AND b IN (1, 2) OR NOT c LIKE 'x;%'",
        "SELECT count(*), sum(x) FILTER (WHERE x > 1), COUNT(DISTINCT y) FROM s",
        "SELECT window.start, window.end, count(*) FROM s GROUP BY window(ts, '10 seconds')",
        "SELECT window, count(*) FROM s GROUP BY window(ts, INTERVAL '10' SECOND)",
        "SELECT count(*) FROM s GROUP BY window(ts, INTERVAL 10 SECONDS)",
        "SELECT count(*) FROM s GROUP BY window(ts, size => '1 minute', slide => '10 seconds', offset => '5 seconds')",
        "SELECT count(*) FROM s GROUP BY session_window(ts, CASE WHEN a THEN '5 minutes' ELSE '1 minute' END)",
        "SELECT window_time(window) FROM s GROUP BY window(ts, '1 month', time_zone => 'Europe/Berlin')",
        "SELECT window.start AS w FROM s GROUP BY w",
        "SELECT DISTINCT a FROM s",
        "SELECT DISTINCT ON (a) b FROM s",
        "SELECT * FROM a LEFT JOIN b ON a.x = b.x FULL JOIN c USING (x)",
        "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.x = b.x) AND y NOT IN (SELECT y FROM c)",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        "WITH watermark AS (SELECT 1 AS a) SELECT * FROM watermark",
        "WITH watermark (a) AS (SELECT 1) SELECT a FROM watermark",
        "VALUES (1, 'a'), (2, 'b')",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "SELECT a FROM s UNION SELECT b FROM t ORDER BY 1 LIMIT 3",
        "SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS rn FROM s",
        "SELECT a, count(*) FROM s GROUP BY GROUPING SETS ((a), ())",
        "SELECT a FROM s GROUP BY ROLLUP (a)",
        "SELECT output, trigger, mode, watermark, checkpoint, window, delay, within, stop, batches FROM s",
        "SELECT s.output, s.watermark + 1 FROM s WHERE trigger > 1 AND checkpoint = 'x' AND mode = 2",
        "SELECT * FROM unnest([1, 2])",
        "SELECT * FROM TUMBLE(s, ts, INTERVAL '1' MINUTE)",
        "SELECT * FROM HOP(s, ts, '10 seconds', '1 minute') AS w",
        "SELECT * FROM CUMULATE(s, ts, '10 seconds', '1 minute')",
        "SELECT * FROM SESSION(s, ts, '5 minutes')",
        "SELECT CAST(a AS TIMESTAMP(3)), a::INT, TRY_CAST(b AS DATE), EXTRACT(YEAR FROM ts) FROM s",
        "SELECT {a: 1, 'b': 2}, [1, 2], 'it''s', E'a\\nb', 1.5e3, -x FROM s",
        "SELECT * EXCLUDE (a) FROM s",
        "FROM s SELECT a",
        "FROM s",
        "SELECT TIMESTAMP '2024-01-01 00:00:00', DATE '2024-01-01'",
    ] {
        let query = query(text);
        assert!(query.watermarks.is_empty() && query.within_watermark.is_empty(), "{text}");
        assert_eq!(query.text, text);
        canonical(text);
    }
}

#[test]
fn output_mode_in_a_select_list_is_a_column() {
    let Statement::StartQuery(start) = parsed("START QUERY q AS SELECT output mode FROM s") else { panic!() };
    assert_eq!((start.query.ast.to_string().as_str(), start.mode), ("SELECT output AS mode FROM s", None));
    let Statement::StartQuery(start) = parsed("START QUERY q AS SELECT trigger FROM s OUTPUT MODE UPDATE") else {
        panic!()
    };
    assert_eq!(start.query.ast.to_string(), "SELECT trigger FROM s");
    assert_eq!(start.mode.map(|(mode, _)| mode), Some(OutputMode::Update));
}

#[test]
fn clauses_in_any_order_behind_any_query() {
    for query in [
        "SELECT a FROM s",
        "SELECT a FROM s AS x",
        "SELECT a FROM s x WHERE a > 1",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        "SELECT a FROM s ORDER BY a LIMIT 5",
        "SELECT a FROM s UNION ALL SELECT b FROM t",
        "SELECT a, count(*) FROM s GROUP BY a HAVING count(*) > 1 WITH WATERMARK ts DELAY '1 s'",
        "(SELECT a FROM s)",
        "SELECT a FROM (SELECT 1 AS a) trigger",
        "VALUES (1)",
    ] {
        let clauses =
            ["OUTPUT MODE UPDATE", "TRIGGER ONCE", "STOP AFTER 2 BATCHES", "CHECKPOINT 'c'", "WITH (partitions = 2)"];
        for turn in 0..clauses.len() {
            let mut turned = clauses;
            turned.rotate_left(turn);
            let text = format!("START QUERY q AS {query} {}", turned.join(" "));
            let Statement::StartQuery(start) = parsed(&text) else { panic!() };
            assert_eq!(start.query.text, query, "{text}");
            assert_eq!(start.mode.map(|m| m.0), Some(OutputMode::Update));
            assert_eq!((start.trigger, start.stop_after), (Some(Trigger::Once), Some(2)));
            assert_eq!((start.checkpoint.as_deref(), start.options.entries.len()), (Some("c"), 1));
            canonical(&text);
        }
    }
}

#[test]
fn with_watermark_belongs_to_its_block() {
    let text = "SELECT a FROM (\n  SELECT a FROM s GROUP BY a HAVING a > 1 WITH WATERMARK ts DELAY INTERVAL '10 seconds', \"T\".Ts DELAY '1 hour'\n) x ORDER BY a";
    let query = query(text);
    assert_eq!(query.ast.to_string(), "SELECT a FROM (SELECT a FROM s GROUP BY a HAVING a > 1) x ORDER BY a");
    let [first, second] = &query.watermarks[..] else { panic!() };
    assert_eq!(first.select, Location { line: 2, column: 3 });
    assert_eq!(first.to_string(), "ts DELAY INTERVAL '10 seconds'");
    assert_eq!((first.span.start.column, first.span.end.column), (58, 88));
    assert_eq!(second.to_string(), "\"T\".ts DELAY INTERVAL '1 hour'");
    assert_eq!((second.select, second.table), (first.select, None));
}

#[test]
fn with_watermark_in_set_operations_and_ctes() {
    let text = "WITH w AS (SELECT a FROM s WITH WATERMARK t DELAY '1 s') \
                SELECT a FROM w UNION ALL SELECT a FROM r WITH WATERMARK u DELAY '2 s' LIMIT 5";
    let query = query(text);
    assert_eq!(query.ast.to_string(), "WITH w AS (SELECT a FROM s) SELECT a FROM w UNION ALL SELECT a FROM r LIMIT 5");
    let columns: Vec<u64> = query.watermarks.iter().map(|w| w.select.column).collect();
    assert_eq!(columns, [12, text.rfind("SELECT").unwrap() as u64 + 1]);
    let first = query_of_from_first();
    assert_eq!(first.watermarks[0].select, Location { line: 1, column: 1 });
}

fn query_of_from_first() -> QueryText {
    query("FROM s WITH WATERMARK ts DELAY '1 s'")
}

#[test]
fn from_first_takes_the_select_behind_it() {
    let query = query("FROM s WATERMARK ts DELAY OF '1 s' SELECT a");
    assert_eq!(query.watermarks[0].select, Location { line: 1, column: 36 });
    assert_eq!(query.ast.to_string(), "FROM s SELECT a");
}

#[test]
fn sparks_watermark_belongs_to_a_table() {
    let text = "SELECT * FROM s WATERMARK ts DELAY OF INTERVAL 10 SECONDS AS x \
                JOIN c.d.t WATERMARK u DELAY OF INTERVAL '1' HOUR y ON x.a = y.a \
                JOIN (SELECT 1 AS a) WATERMARK v DELAY OF '1 day' d ON TRUE, TUMBLE(z WATERMARK w DELAY OF '1 s', w, '1 m')";
    let query = query(text);
    assert_eq!(
        query.ast.to_string(),
        "SELECT * FROM s AS x JOIN c.d.t y ON x.a = y.a JOIN (SELECT 1 AS a) d ON true, TUMBLE(z, w, '1 m')"
    );
    let place = |needle: &str| Some(Location { line: 1, column: text.find(needle).unwrap() as u64 + 1 });
    let tables: Vec<_> = query.watermarks.iter().map(|w| w.table).collect();
    assert_eq!(tables, [place("s WATERMARK"), place("c.d.t"), place("(SELECT 1"), place("z WATERMARK")]);
    assert!(query.watermarks.iter().all(|w| w.select == START));
    let delays: Vec<String> = query.watermarks.iter().map(|w| w.delay.to_string()).collect();
    assert_eq!(delays, ["10 seconds", "1 hour", "1 day", "1 second"]);
    // A unit behind a whole interval is an alias.
    assert_eq!(sql("SELECT * FROM s WATERMARK ts DELAY OF INTERVAL '10 seconds' day"), "SELECT * FROM s day");
}

#[test]
fn within_watermark_behind_distinct_on() {
    let query = query("SELECT 1 UNION ALL SELECT DISTINCT ON (a, (b)) WITHIN WATERMARK a, b FROM s");
    assert_eq!(query.ast.to_string(), "SELECT 1 UNION ALL SELECT DISTINCT ON (a, (b)) a, b FROM s");
    assert_eq!(query.within_watermark, [Location { line: 1, column: 20 }]);
}

#[test]
fn flinks_window_functions() {
    for (text, wanted) in [
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS x",
            "SELECT * FROM TUMBLE(s, ts, INTERVAL '1' MINUTE) AS x",
        ),
        (
            "SELECT * FROM table(hop(DATA => table s, TIMECOL => descriptor(ts), SLIDE => '1 s', SIZE => '2 s'))",
            "SELECT * FROM hop(DATA => s, TIMECOL => ts, SLIDE => '1 s', SIZE => '2 s')",
        ),
        (
            "SELECT * FROM SESSION(s PARTITION BY k, ts, '5 minutes')",
            "SELECT * FROM SESSION(s, ts, '5 minutes', partition_by => [k])",
        ),
        (
            "SELECT * FROM SESSION(s PARTITION BY a, f(b, c), ts, x + INTERVAL '1' SECOND)",
            "SELECT * FROM SESSION(s, ts, x + INTERVAL '1' SECOND, partition_by => [a, f(b, c)])",
        ),
        (
            "SELECT * FROM TABLE(SESSION(TABLE s PARTITION BY (a, b), DESCRIPTOR(ts), INTERVAL '5' MINUTE))",
            "SELECT * FROM SESSION(s, ts, INTERVAL '5' MINUTE, partition_by => [a, b])",
        ),
        (
            "SELECT * FROM TUMBLE((SELECT * FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), '1 s', '2 s'))), ts, '1 s')",
            "SELECT * FROM TUMBLE((SELECT * FROM HOP(s, ts, '1 s', '2 s')), ts, '1 s')",
        ),
        ("SELECT session, hop, tumble FROM s", "SELECT session, hop, tumble FROM s"),
    ] {
        assert_eq!(sql(text), wanted);
        canonical(text);
    }
}

#[test]
fn canonical_text_forgets_space_comments_and_case_only() {
    let of = |text: &str| canonical_query(&query(text));
    let base = of("SELECT a, count(*) FROM s WHERE x = 'A b' GROUP BY window(ts, '1 m') WITH WATERMARK ts DELAY '1 s'");
    assert_eq!(
        base,
        "SELECT a, count(*) FROM s WHERE x = 'A b' GROUP BY window(ts, '1 m') WITH WATERMARK ts DELAY '1 s'"
    );
    assert_eq!(
        base,
        of(
            "select A ,Count ( * )\n from S -- x\n where X='A b' /* y */ group by WINDOW( ts,'1 m' )with watermark TS delay'1 s'"
        )
    );
    let different = [
        "SELECT 1",
        "SELECT 1.0",
        "SELECT '1'",
        "SELECT \"A\" FROM s",
        "SELECT a FROM s",
        "SELECT \"a b\" FROM s",
        "SELECT - - 1",
        "SELECT -1",
        "SELECT a FROM s WITH WATERMARK ts DELAY '1 s'",
        "SELECT a FROM s WATERMARK ts DELAY OF '1 s'",
        "SELECT 'a' 'b'",
        "SELECT 'A'",
        "SELECT E'a'",
        "SELECT x'61'",
        "SELECT DISTINCT ON (a) a FROM s",
        "SELECT DISTINCT ON (a) WITHIN WATERMARK a FROM s",
        "SELECT a.b FROM s",
        "SELECT ' a'",
        "SELECT 'a '",
    ];
    let texts: std::collections::BTreeSet<String> = different.iter().map(|text| of(text)).collect();
    assert_eq!(texts.len(), different.len(), "{texts:?}");
}

#[test]
fn sqlparsers_spans_point_into_the_input() {
    use sqlparser::ast::Spanned;
    let mut splitter = Splitter::new("SELECT 1;\n  SELECT\n    größe FROM s");
    let second = splitter.nth(1).unwrap().unwrap();
    let Statement::Select(query) = second.statement else { panic!() };
    let sqlparser::ast::SetExpr::Select(select) = &*query.ast.body else { panic!() };
    let span = select.projection[0].span();
    assert_eq!((span.start.line, span.start.column, span.end.column), (3, 5, 10));
    assert_eq!(second.span.start, Location { line: 2, column: 3 });
}

#[test]
fn intervals_in_expressions() {
    use sqlparser::ast::{Expr, SelectItem, SetExpr};
    let interval = |text: &str| {
        let query = query(&format!("SELECT {text}"));
        let SetExpr::Select(select) = *query.ast.body else { panic!() };
        let [SelectItem::UnnamedExpr(expr)] = &select.projection[..] else { panic!("{text}") };
        let expr: &Expr = expr;
        Interval::from_expr(expr)
    };
    for text in [
        "INTERVAL '10 seconds'",
        "INTERVAL '10' SECOND",
        "INTERVAL 10 SECONDS",
        "'10 seconds'",
        "('10 s')",
        "INTERVAL '10' second",
    ] {
        assert_eq!(interval(text).unwrap(), Interval { months: 0, micros: 10_000_000 }, "{text}");
    }
    assert_eq!(interval("INTERVAL -2 DAYS").unwrap().to_string(), "-2 days");
    for text in ["5", "a", "INTERVAL '10'", "INTERVAL '1' DAY TO SECOND", "'ten seconds'", "INTERVAL '10 s' SECOND"] {
        let error = interval(text).unwrap_err();
        assert!(error.span().is_some_and(|span| span.start.line == 1), "{text}: {error:?}");
    }
}
