//! Random queries from the grammar that the engine runs, and random rows for them.
//!
//! A query reads stream `s` (and perhaps `u`, of the same columns) under the alias `x`, perhaps joined with the static
//! table `t`:
//!
//! ```text
//! ts TIMESTAMP, d DATE, k STRING, v BIGINT, f DOUBLE (NaN, −0.0), g DOUBLE (multiples of ¼), p DECIMAL(10, 2), b BOOLEAN
//! t: k STRING, name STRING, limit_v BIGINT
//! ```
//! min, max and sums are not taken of `f`: over NaN DataFusion's own answer depends on the order of rows. Left out, as
//! DataFusion refuses them in a batch too: IN (SELECT …) outside WHERE, and nth_value beside another ordered function.

/// A small generator of our own: the same queries in every run of the test, wherever it runs.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// splitmix64
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A query that was made up.
pub struct Query {
    pub sql: String,
    /// It has an operator that remembers.
    pub aggregates: bool,
    /// It groups by a window over `ts`.
    pub windowed: bool,
    /// It reads `u` too.
    pub two: bool,
    /// How many columns may be sorted by; 0 where they can't be named by their numbers.
    pub sortable: usize,
}

/// What a FROM gives, and what may be asked of it.
struct Source {
    with: String,
    from: String,
    joined: bool,
    two: bool,
    /// It has window_start and window_end.
    spread: bool,
    /// They are those of sessions of `k`.
    sessions: bool,
}

pub fn query(dice: &mut Dice) -> Query {
    let source = source(dice);
    // A filter behind SESSION(…) would leave out rows of sessions that are there.
    let filters = if source.sessions { 0 } else { dice.below(3) };
    let filters: Vec<String> = (0..filters).map(|_| predicate(dice, source.joined)).collect();
    let filters = if filters.is_empty() { String::new() } else { format!(" WHERE {}", filters.join(" AND ")) };
    let body = format!("FROM {}{filters}", source.from);
    if !source.spread && dice.chance(12) {
        let columns: Vec<String> = (0..1 + dice.below(3)).map(|n| format!("{} AS c{n}", value(dice))).collect();
        let sql = format!("{}SELECT x.k, x.v, {} {body}", source.with, columns.join(", "));
        return Query { sql, aggregates: false, windowed: false, two: source.two, sortable: 0 };
    }
    if !source.spread && dice.chance(18) {
        let (sql, sortable) = nested(dice, &body);
        let sql = format!("{}{sql}", source.with);
        return Query { sql, aggregates: true, windowed: false, two: source.two, sortable };
    }
    if !source.spread && dice.chance(12) {
        let sql = format!("{}{}", source.with, first_rows(dice, &body));
        return Query { sql, aggregates: true, windowed: false, two: source.two, sortable: 0 };
    }
    let (keys, mut columns) = keys(dice, &source);
    let windowed = source.spread || keys.iter().any(|key| key.contains("window("));
    let sessions = source.sessions || keys.iter().any(|key| key.contains("session_window("));
    for n in 0..1 + dice.below(4) {
        let measure = if sessions { measure_of_session(dice) } else { measure(dice) };
        columns.push(format!("{measure} AS a{n}"));
    }
    let group = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
    let having = if dice.chance(25) { format!(" HAVING {}", having(dice)) } else { String::new() };
    let sql = format!("{}SELECT {} {body}{group}{having}", source.with, columns.join(", "));
    let (sql, wrapped) = match dice.chance(25) {
        true => (above(dice, &sql, columns.iter().any(|c| c == "x.k AS k0")), true),
        false => (sql, false),
    };
    let structs = columns.iter().any(|c| c.contains("window AS") || c.starts_with("named_struct"));
    let sortable = if wrapped || structs { 0 } else { columns.len() };
    Query { sql, aggregates: true, windowed, two: source.two, sortable }
}

/// What takes back the rows that it has given, and something over it; and how many columns may be sorted by.
fn nested(dice: &mut Dice, body: &str) -> (String, usize) {
    let key = dice.pick(&["x.k", "x.v % 5", "x.b", "x.d", "x.v"]);
    let having = if dice.chance(40) { format!(" HAVING {}", having(dice)) } else { String::new() };
    let inner = format!(
        "SELECT {key} AS k0, count(*) AS n, sum(x.v) AS m, min(x.k) AS t, max(x.g) AS g, avg(x.v) AS a {body} GROUP BY {key}{having}"
    );
    if dice.chance(20) {
        let columns = dice.pick(&["o.n", "o.t, o.n", "o.t", "o.n % 2 AS r"]);
        return (format!("SELECT DISTINCT {columns} FROM ({inner}) o"), 0);
    }
    let group = dice.pick(&["", "o.n", "o.n % 2", "o.t"]);
    let mut columns: Vec<String> = if group.is_empty() { Vec::new() } else { vec![format!("{group} AS k0")] };
    for n in 0..1 + dice.below(4) {
        let measure = dice.pick(&[
            "count(*)",
            "count(DISTINCT o.m)",
            "sum(o.n)",
            "sum(o.g)",
            "avg(o.a)",
            "avg(o.n)",
            "min(o.m)",
            "max(o.m)",
            "min(o.t)",
            "max(o.g)",
            "max(o.t)",
            "stddev(o.n)",
            "median(o.m)",
            "bool_and(o.n > 1)",
            "bit_xor(o.n)",
            "sum(DISTINCT o.n)",
            "array_agg(o.m ORDER BY o.m)",
            "array_agg(DISTINCT o.t ORDER BY o.t)",
            "string_agg(o.t, ',' ORDER BY o.t)",
            "first_value(o.n ORDER BY o.n DESC)",
            "last_value(o.t ORDER BY o.t)",
            "percentile_cont(0.75) WITHIN GROUP (ORDER BY o.n)",
            "max(o.m) - min(o.m) + count(*)",
        ]);
        let filter = if !measure.contains(" - ") && dice.chance(20) { " FILTER (WHERE o.n < 4)" } else { "" };
        columns.push(format!("{measure}{filter} AS a{n}"));
    }
    let by = if group.is_empty() { String::new() } else { format!(" GROUP BY {group}") };
    (format!("SELECT {} FROM ({inner}) o{by}", columns.join(", ")), columns.len())
}

/// A Top-N whose result does not depend on how equal rows are told apart.
fn first_rows(dice: &mut Dice, body: &str) -> String {
    let direction = |dice: &mut Dice| dice.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
    let (a, b) = (direction(dice), direction(dice));
    let n = dice.between(1, 4);
    let (first, second) = match dice.chance(50) {
        true => ("x.v", "x.k"),
        false => ("x.g", "x.v"),
    };
    match dice.below(4) {
        0 => format!("SELECT {first} AS c0, {second} AS c1 {body} ORDER BY {first}{a}, {second}{b} LIMIT {n}"),
        1 => {
            let skip = dice.between(1, 3);
            format!(
                "SELECT {first} AS c0, {second} AS c1 {body} ORDER BY {first}{a}, {second}{b} LIMIT {n} OFFSET {skip}"
            )
        }
        2 => format!(
            "SELECT * FROM (SELECT x.b, {first} AS c0, {second} AS c1, row_number() OVER (PARTITION BY x.b ORDER BY {first}{a}, {second}{b}) AS r {body}) o WHERE o.r <= {n}"
        ),
        _ => {
            let function = dice.pick(&["rank()", "dense_rank()"]);
            let filter = dice.pick(&["o.r < 3", "o.r = 1", "o.r BETWEEN 2 AND 3", "o.r <= 2 AND o.c0 IS NOT NULL"]);
            format!(
                "SELECT * FROM (SELECT x.k, {first} AS c0, {second} AS c1, {function} OVER (PARTITION BY x.k ORDER BY {first}{a}) AS r {body}) o WHERE {filter}"
            )
        }
    }
}

/// Filters, projections and static joins above an aggregation.
fn above(dice: &mut Dice, sql: &str, has_k: bool) -> String {
    match dice.below(6) {
        0 => format!("SELECT * FROM ({sql}) o WHERE o.a0 IS NOT NULL"),
        1 => format!("SELECT o.*, CASE WHEN o.a0 IS NULL THEN 'nothing' ELSE 'something' END AS z FROM ({sql}) o"),
        2 if has_k => format!("SELECT o.*, t.name FROM ({sql}) o LEFT JOIN t ON o.k0 = t.k"),
        3 if has_k => format!("SELECT o.a0, t.name FROM ({sql}) o JOIN t ON o.k0 = t.k AND t.limit_v < 15"),
        4 if has_k => format!("SELECT * FROM ({sql}) o WHERE o.k0 IN (SELECT k FROM t)"),
        5 => format!("WITH o AS ({sql}) SELECT a0 IS NULL AS nothing, o.* FROM o"),
        _ => format!("SELECT o.a0 FROM ({sql}) o WHERE (SELECT count(*) FROM t) = 5"),
    }
}

fn source(dice: &mut Dice) -> Source {
    const ALL: &str = "ts, d, k, v, f, g, p, b";
    let (mut with, mut two, mut spread, mut sessions) = (String::new(), false, false, false);
    let mut from = match dice.below(12) {
        0 | 1 => format!("(SELECT {} FROM s WHERE {}) x", computed(dice), plain(dice, "")),
        2 => {
            two = true;
            format!("(SELECT {ALL} FROM s UNION ALL SELECT {ALL} FROM u WHERE {}) x", plain(dice, ""))
        }
        3 => {
            two = true;
            format!("(SELECT {} FROM u UNION ALL SELECT {ALL} FROM s) x", computed(dice))
        }
        4 => {
            let (one, other) = (plain(dice, ""), plain(dice, ""));
            format!("(SELECT {ALL} FROM s WHERE {one} UNION ALL SELECT {} FROM s WHERE {other}) x", computed(dice))
        }
        5 => {
            with = format!("WITH y AS (SELECT {} FROM s WHERE {}) ", computed(dice), plain(dice, ""));
            "y x".into()
        }
        6 => format!(
            "(SELECT {} FROM (SELECT {ALL} FROM s WHERE {}) z WHERE {}) x",
            computed(dice),
            plain(dice, ""),
            plain(dice, "z.")
        ),
        7 => {
            spread = true;
            dice.pick(&[
                "HOP(s, ts, '3 seconds', '9 seconds') x",
                "TUMBLE(s, ts, '7 seconds') x",
                "CUMULATE(s, ts, '3 seconds', '9 seconds') x",
                "CUMULATE(s, ts, '2 seconds', '10 seconds', '-3 seconds') x",
                "TUMBLE(s, ts, '1 day', '01:00:07', time_zone => 'Europe/Berlin') x",
                "TUMBLE(s, ts, '1 month') x",
                "HOP(s, ts, '1 day', '3 days', '01:00:07', time_zone => 'Europe/Berlin') x",
                "HOP(s, ts, '1 month', '1 quarter') x",
            ])
            .into()
        }
        8 => {
            (spread, sessions) = (true, true);
            let data = match dice.chance(50) {
                true => "s".to_string(),
                false => format!("(SELECT {} FROM s WHERE {})", computed(dice), plain(dice, "")),
            };
            format!("SESSION({data} PARTITION BY k, ts, {}) x", gap(dice, ""))
        }
        _ => "s x".to_string(),
    };
    let joined = !sessions && dice.chance(25);
    if joined {
        let kind = dice.pick(&["JOIN", "LEFT JOIN"]);
        let extra = dice.pick(&["", "", " AND x.v > t.limit_v"]);
        from += &format!(" {kind} t ON x.k = t.k{extra}");
    }
    Source { with, from, joined, two, spread, sessions }
}

/// The eight columns, some of them computed.
fn computed(dice: &mut Dice) -> String {
    let d = dice.pick(&["d", "CAST(ts AS DATE) AS d"]);
    let k = dice.pick(&["k", "upper(k) AS k", "coalesce(k, 'none') AS k", "nullif(k, 'b') AS k"]);
    let v = dice.pick(&["v", "v + 1 AS v", "-v AS v", "abs(v) AS v", "CASE WHEN b THEN v ELSE v * 2 END AS v"]);
    let f = dice.pick(&["f", "f * 2 AS f", "-f AS f"]);
    let g = dice.pick(&["g", "g * 2 AS g", "coalesce(g, 0.5) AS g", "CAST(v AS DOUBLE) AS g"]);
    let p = dice.pick(&["p", "CAST(p * 2 AS DECIMAL(10, 2)) AS p", "CAST(v AS DECIMAL(10, 2)) AS p"]);
    let b = dice.pick(&["b", "NOT b AS b", "v > 0 AS b"]);
    format!("ts, {d}, {k}, {v}, {f}, {g}, {p}, {b}")
}

/// How long a session waits for the next row.
fn gap(dice: &mut Dice, q: &str) -> String {
    let gap = dice.pick(&[
        "'2 seconds'",
        "INTERVAL '700 milliseconds'",
        "CASE WHEN $v > 0 THEN '4 seconds' ELSE '500 milliseconds' END",
        "($v * 30) || ' milliseconds'",
        "CASE WHEN $k = 'a' THEN INTERVAL '3 seconds' WHEN $b THEN INTERVAL '0 seconds' ELSE INTERVAL '1 second' END",
    ]);
    gap.replace('$', q)
}

/// A condition on one row's columns.
fn plain(dice: &mut Dice, q: &str) -> String {
    let n = dice.between(-60, 60);
    let text = match dice.below(16) {
        0 => "$v IS NOT NULL".into(),
        1 => "$k IS NULL".into(),
        2 => format!("$v > {n}"),
        3 => "$v % 3 = 1".into(),
        4 => format!("$v BETWEEN {n} AND {}", n + 60),
        5 => "$k LIKE '%a%'".into(),
        6 => "$k NOT LIKE 'b_'".into(),
        7 => "($k IS NULL OR $k <> 'b')".into(),
        8 => "CASE WHEN $b THEN $v > 0 ELSE $g < 1 END".into(),
        9 => "NOT $b".into(),
        10 => "$b IS NOT TRUE".into(),
        11 => "$d >= DATE '1970-01-01'".into(),
        12 => "coalesce($v, 0) >= 0".into(),
        13 => format!("$g <= {}", n as f64 / 4.0),
        14 => "$k IN ('a', 'ключ', NULL)".into(),
        _ => format!("($v < {n} OR $f = $f)"),
    };
    text.replace('$', q)
}

/// A condition for WHERE: also one that asks the static table.
fn predicate(dice: &mut Dice, joined: bool) -> String {
    match dice.below(14) {
        6 => "x.v > coalesce((SELECT max(y.limit_v) FROM t y WHERE y.k = x.k), 0)".into(),
        7 => "x.p <> 0.5".into(),
        0 => "x.k IN (SELECT k FROM t)".into(),
        1 => "x.k NOT IN (SELECT k FROM t WHERE k IS NOT NULL)".into(),
        2 => "x.v > (SELECT min(limit_v) FROM t)".into(),
        3 => "EXISTS (SELECT 1 FROM t y WHERE y.k = x.k)".into(),
        4 => "NOT EXISTS (SELECT 1 FROM t y WHERE y.k = x.k)".into(),
        5 if joined => "(t.name IS NULL OR t.name <> 'none')".into(),
        _ => plain(dice, "x."),
    }
}

/// An expression of one row, of any type.
fn value(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "x.v * 2 + 1",
        "CASE WHEN x.v < 0 THEN 'neg' ELSE x.k END",
        "coalesce(x.k, '?') || '!'",
        "x.f",
        "x.g / 2",
        "x.d",
        "x.b AND x.v > 0",
        "x.ts",
        "x.v % 7",
        "length(x.k)",
        "x.k IS NULL",
        "date_trunc('minute', x.ts)",
    ])
}

/// Up to three grouping keys, and the columns that show them.
fn keys(dice: &mut Dice, source: &Source) -> (Vec<String>, Vec<String>) {
    let (mut keys, mut columns): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    if source.sessions {
        let keys = ["x.window_start", "x.k", "x.window_end"].map(String::from);
        let columns = ["x.window_start AS w0", "x.k AS k0", "x.window_end AS w1"].map(String::from);
        return (keys.into(), columns.into());
    }
    if source.spread {
        keys.extend(["x.window_start".into(), "x.window_end".into()]);
        columns.extend(["x.window_start AS w0".into(), "x.window_end AS w1".into()]);
    } else if dice.chance(20) {
        keys.push(format!("session_window(x.ts, {})", gap(dice, "x.")));
        columns.push(
            dice.pick(&[
                "session_window.start AS w0",
                "session_window.end AS w0, session_window.start AS w1",
                "session_window AS w0",
            ])
            .into(),
        );
    } else if dice.chance(40) {
        keys.push(
            dice.pick(&[
                "window(x.ts, '10 seconds')",
                "window(x.ts, '9 seconds', '3 seconds')",
                "window(x.ts, '10 seconds', '4 seconds')",
                "window(x.ts, '5 seconds', '5 seconds', '2 seconds')",
                "window(x.ts, size => '6 seconds', offset => '-1 second')",
                "window(x.ts, '1 month')",
                "window(x.ts, '3 months', '1 month')",
                "window(x.ts, '1 week', '1 day', offset => '-00:00:02', time_zone => 'Europe/Berlin')",
                "window(x.ts, '1 week', offset => '3 days 10:00:05', time_zone => '+10:00')",
                "window(x.ts, '1 day', offset => '-00:00:04', time_zone => 'UTC')",
            ])
            .into(),
        );
        columns.push(dice.pick(&["window.start AS w0", "window.start AS w0, window.end AS w1", "window AS w0"]).into());
    }
    for n in 0..dice.below(3) {
        let key = match source.joined && dice.chance(30) {
            true => dice.pick(&["t.name", "coalesce(t.name, x.k)", "t.limit_v"]),
            false => dice.pick(&[
                "x.k",
                "x.k",
                "x.v % 5",
                "x.f",
                "x.d",
                "x.b",
                "x.g > 0",
                "upper(x.k)",
                "x.v / 20",
                "length(x.k)",
                "x.f * 2",
                "coalesce(x.k, 'none')",
                "CASE WHEN x.v < 0 THEN 'neg' ELSE x.k END",
                "x.v IS NULL",
                "x.p",
                "round(x.g)",
                "named_struct('k', x.k, 'v', x.v % 2)",
                "make_array(x.k, 'z')",
                "date_trunc('minute', x.ts)",
                "x.b AND x.v > 0",
                "'one'",
            ]),
        };
        if !keys.iter().any(|k| k == key) {
            columns.push(format!("{key} AS k{n}"));
            keys.push(key.into());
        }
    }
    (keys, columns)
}

/// The same of sessions, which keep no order of their rows.
fn measure_of_session(dice: &mut Dice) -> String {
    const WITHOUT_ORDER: [&str; 3] = ["array_sort(array_agg(", "array_length(array_agg(", "octet_length(string_agg("];
    loop {
        let measure = measure(dice);
        if !WITHOUT_ORDER.iter().any(|call| measure.contains(call)) {
            return measure;
        }
    }
}

/// An aggregate, or an expression of some.
fn measure(dice: &mut Dice) -> String {
    match dice.below(20) {
        7 | 8 => call(
            dice,
            &[
                "array_sort(array_agg(x.v))",
                "array_sort(array_agg(x.k))",
                "array_sort(array_agg(DISTINCT x.v))",
                "array_length(array_agg(x.b))",
                "octet_length(string_agg(x.k, '-'))",
                "string_agg(x.k, '-' ORDER BY x.k DESC)",
                "string_agg(DISTINCT x.k, '' ORDER BY x.k)",
                "array_agg(x.k ORDER BY x.v, x.k)",
                "array_agg(x.p ORDER BY x.p DESC)",
                "array_agg(DISTINCT x.k ORDER BY x.k DESC)",
                "median(x.g)",
                "median(x.f)",
                "median(x.p)",
                "median(x.v) - percentile_cont(0.5) WITHIN GROUP (ORDER BY x.v)",
                "median(DISTINCT x.v)",
                "median(DISTINCT x.p)",
                "percentile_cont(0.75) WITHIN GROUP (ORDER BY x.g DESC)",
                "percentile_cont(0.9) WITHIN GROUP (ORDER BY x.v) - percentile_cont(0.1) WITHIN GROUP (ORDER BY x.v)",
                "percentile_cont(DISTINCT x.v, 0.4)",
            ],
        ),
        5 => {
            let (one, other) = (dice.pick(&["x.v", "x.k", "x.f"]), dice.pick(&["x.v % 7", "x.g", "x.d", "x.v"]));
            let other = call(dice, &[&format!("count(DISTINCT {other})")]);
            format!("count(DISTINCT {one}) * 1000 + {other}")
        }
        6 => "sum(DISTINCT x.v) * 2 - count(DISTINCT x.v) + avg(DISTINCT x.v)".into(),
        0 => format!("coalesce({}, 0) * 2 + count(*)", call(dice, &["sum(x.v)", "max(x.v)", "count(x.g)"])),
        1 => "CASE WHEN count(*) > 2 THEN 'many' WHEN max(x.v) IS NULL THEN 'none' ELSE 'few' END".into(),
        2 => "sum(x.v) / nullif(count(x.v), 0)".into(),
        3 => "max(x.v) - min(x.v)".into(),
        4 => "min(x.k) || '..' || max(x.k)".into(),
        _ => call(
            dice,
            &[
                "count(*)",
                "count(*)",
                "count(x.v)",
                "count(x.k)",
                "sum(x.v)",
                "sum(x.v)",
                "sum(x.g)",
                "sum(x.v * 2 + 1)",
                "avg(x.v)",
                "avg(x.g)",
                "min(x.v)",
                "max(x.v)",
                "min(x.k)",
                "max(x.k)",
                "max(x.d)",
                "min(x.ts)",
                "min(x.g)",
                "max(x.b)",
                "stddev(x.v)",
                "stddev_pop(x.g)",
                "var_samp(x.v)",
                "count(DISTINCT x.v)",
                "count(DISTINCT x.k)",
                "count(DISTINCT x.f)",
                "sum(DISTINCT x.v)",
                "bool_and(x.b)",
                "bool_or(x.v > 50)",
                "bit_xor(x.v)",
                "first_value(x.v ORDER BY x.v)",
                "first_value(x.k ORDER BY x.v, x.k)",
                "last_value(x.k ORDER BY x.k)",
                "last_value(x.v ORDER BY x.g, x.v)",
                "array_agg(x.v ORDER BY x.v)",
                "string_agg(x.k, ',' ORDER BY x.k)",
                "median(x.v)",
                "corr(x.v, x.g)",
                "covar_samp(x.v, x.g)",
                "regr_slope(x.g, x.v)",
                "sum(x.p)",
                "avg(x.p)",
                "min(x.p)",
                "sum(DISTINCT x.p)",
                "avg(DISTINCT x.v)",
                "avg(DISTINCT x.g)",
                "avg(DISTINCT x.p)",
                "sum(DISTINCT x.g)",
                "count(DISTINCT x.p)",
                "count(DISTINCT x.ts)",
                "count(DISTINCT x.b)",
                "count(DISTINCT x.v % 7)",
                "count(DISTINCT named_struct('k', x.k, 'v', x.v % 3))",
                "bit_xor(DISTINCT x.v)",
                "var_pop(DISTINCT x.v)",
                "min(DISTINCT x.v)",
                "max(DISTINCT x.k)",
                "array_agg(DISTINCT x.v ORDER BY x.v)",
                "string_agg(DISTINCT x.k, ',' ORDER BY x.k)",
                "percentile_cont(0.25) WITHIN GROUP (ORDER BY x.v)",
                "bit_and(x.v)",
                "bool_and(x.k = 'a')",
                "min(coalesce(x.k, 'm'))",
                "var_pop(x.g)",
                "approx_distinct(x.k)",
                "sum(CASE WHEN x.b THEN x.v END)",
                "max(x.v) + 0 * sum(x.v)",
            ],
        ),
    }
}

/// A call, now and then over some of the rows only.
fn call(dice: &mut Dice, from: &[&str]) -> String {
    let call = dice.pick(from);
    if dice.chance(25) { format!("{call} FILTER (WHERE {})", plain(dice, "x.")) } else { call.into() }
}

fn having(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "count(*) % 2 = 1",
        "count(*) > 1",
        "sum(x.v) > 0",
        "max(x.v) IS NOT NULL",
        "min(x.k) < 'b'",
        "count(DISTINCT x.k) > 1 OR sum(x.g) < 0",
    ])
}

const KEYS: [&str; 7] = ["a", "b", "ba", "ключ", "日本", "", "NaN"];
const FLOATS: [&str; 6] = ["0.0", "-0.0", "'NaN'::DOUBLE", "1.5", "-2.25", "1e300"];
const DATES: [&str; 4] = ["1969-12-31", "1970-01-01", "2024-02-29", "0001-01-01"];

/// One row of `s` or `u` at `ts` microseconds, as VALUES takes it.
pub fn row(dice: &mut Dice, ts: Option<i64>) -> String {
    fn or_null(dice: &mut Dice, percent: u64, text: impl FnOnce(&mut Dice) -> String) -> String {
        if dice.chance(percent) { "NULL".into() } else { text(dice) }
    }
    let ts = ts.map_or("NULL".into(), |ts| format!("to_timestamp_micros({ts})"));
    let d = or_null(dice, 15, |dice| format!("DATE '{}'", dice.pick(&DATES)));
    let k = or_null(dice, 12, |dice| format!("'{}'", dice.pick(&KEYS)));
    let v = or_null(dice, 12, |dice| dice.between(-100, 100).to_string());
    let f = or_null(dice, 20, |dice| dice.pick(&FLOATS).into());
    let g = or_null(dice, 12, |dice| format!("{:.2}", dice.between(-400, 400) as f64 / 4.0));
    let p = or_null(dice, 12, |dice| format!("{}.{:02}", dice.between(-99, 99), dice.below(100)));
    let b = or_null(dice, 20, |dice| dice.pick(&["TRUE", "FALSE"]).into());
    format!("({ts}, {d}, {k}, {v}, {f}, {g}, {p}, {b})")
}

/// So many rows that a batch of them is spread over all partitions, within three seconds from `ts` microseconds.
pub fn many_rows(ts: i64) -> String {
    format!(
        "SELECT to_timestamp_micros({ts} + (value * 7919) % 3000000),
                CASE value % 5 WHEN 0 THEN NULL WHEN 1 THEN DATE '1970-01-01' ELSE DATE '2024-02-29' END,
                CASE value % 7 WHEN 0 THEN NULL WHEN 1 THEN 'a' WHEN 2 THEN '日本' ELSE 'k' || (value % 50) END,
                CASE WHEN value % 11 = 0 THEN NULL ELSE value % 201 - 100 END,
                CASE value % 6 WHEN 0 THEN 'NaN'::DOUBLE WHEN 1 THEN '-0.0'::DOUBLE WHEN 2 THEN '0.0'::DOUBLE
                               WHEN 3 THEN NULL ELSE CAST(value % 4 AS DOUBLE) END,
                CAST(value % 801 - 400 AS DOUBLE) / 4,
                CAST(value % 99 AS DECIMAL(10, 2)),
                CASE value % 4 WHEN 0 THEN NULL ELSE value % 4 = 1 END
         FROM generate_series(1, 20500)"
    )
}
