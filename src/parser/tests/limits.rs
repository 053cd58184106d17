//! Deep, long and wide statements: refused cleanly, or read in linear time.

use super::*;

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn deep_nesting_is_refused() {
    for depth in [65, 1_000, 20_000] {
        for (open, inner, close) in [
            ("(", "1", ")"),
            ("f(", "1", ")"),
            ("[", "1", "]"),
            ("CASE WHEN ", "1", " THEN 1 END"),
            ("(SELECT ", "1", ")"),
            ("{'a': ", "1", "}"),
        ] {
            let text = format!("SELECT {}", nested(open, inner, close, depth));
            assert!(complaint(&text).contains("nested too deeply"), "{open} {depth}");
        }
        let text = format!("SELECT * FROM {}", nested("(SELECT * FROM ", "s", ") x", depth));
        assert!(complaint(&text).contains("nested too deeply"));
        let text = format!("SELECT * FROM {}", nested("(", "s JOIN t ON TRUE", ")", depth));
        assert!(complaint(&text).contains("nested too deeply"));
        let text = format!("CREATE STREAM s (a {})", nested("ARRAY<", "INT", ">", depth));
        assert!(complaint(&text).contains("nested too deeply"));
        let text = format!("SELECT {}1", "- ".repeat(depth.max(400)));
        assert!(parse(&text).is_err());
        let text = format!("SELECT {}TRUE", "NOT ".repeat(depth.max(400)));
        assert!(parse(&text).is_err());
    }
}

#[test]
fn what_is_deep_enough_for_people_is_read() {
    for depth in [10, 40] {
        for (open, inner, close) in [
            ("(", "1", ")"),
            ("f(", "1", ")"),
            ("[", "1", "]"),
            ("(SELECT ", "1", ")"),
            ("CASE WHEN a THEN ", "1", " END"),
        ] {
            canonical(&format!("SELECT {}", nested(open, inner, close, depth)));
        }
        canonical(&format!("SELECT * FROM {}", nested("(SELECT * FROM ", "s", ") x", depth)));
        canonical(&format!("SELECT * FROM {}", nested("(", "s JOIN t ON TRUE", ")", depth)));
    }
    // As deep as it goes, on the stack of any thread.
    for (open, inner, close) in [("(", "s JOIN t ON TRUE", ")"), ("(SELECT * FROM ", "s", ") x")] {
        parsed(&format!("SELECT * FROM {}", nested(open, inner, close, 63)));
    }
    parsed(&format!("SELECT {}", nested("CASE WHEN (a) THEN (SELECT ", "1", ") END", 31)));
}

#[test]
fn long_chains_are_read_up_to_a_limit() {
    let chain = |n: usize, op: &str| vec!["a"; n].join(op);
    for op in [" OR ", " + ", " || ", " AND "] {
        let text = format!("SELECT {}", chain(500, op));
        // Not optimised, a level of a clone costs five times as much.
        let clone = std::thread::Builder::new().stack_size(16 << 20).spawn(move || {
            let statement = parsed(&text);
            assert_eq!(statement.clone(), statement);
        });
        clone.unwrap().join().unwrap();
        assert!(complaint(&format!("SELECT {}", chain(100_000, op))).contains("operators in a row"));
    }
    parsed(&vec!["SELECT 1"; 400].join(" UNION ALL "));
    // A chain of chains is as deep as both.
    parsed(&format!("SELECT {}", vec!["a.b = c + 1 + 2"; 400].join(" OR ")));
    let inner = format!("({})", chain(300, " + "));
    parsed(&format!("SELECT {}", vec![inner.as_str(); 100].join(" + ")));
    assert!(complaint(&format!("SELECT {}", vec![inner.as_str(); 300].join(" + "))).contains("operators in a row"));
    let nested = (0..10).fold("a".to_string(), |inner, _| format!("({inner} OR {})", chain(100, " OR ")));
    assert!(complaint(&format!("SELECT {nested}")).contains("operators"));
    assert!(complaint(&vec!["SELECT 1"; 50_000].join(" UNION ALL ")).contains("operators in a row"));
    assert!(complaint(&format!("SELECT a{}", "[1]".repeat(50_000))).contains("operators in a row"));
    assert!(complaint(&format!("SELECT a{}", "::INT".repeat(50_000))).contains("operators in a row"));
    // What a CASE hides between two operators still counts.
    let hidden = vec!["CASE WHEN a THEN b END"; 20_000].join(" OR ");
    assert!(complaint(&format!("SELECT {hidden}")).contains("operators in a row"));
}

#[test]
fn a_megabyte_is_read() {
    let row = "(1, 'abc', 2.5)";
    let values = vec![row; 70_000].join(",\n");
    let insert = format!("INSERT INTO s VALUES {values};");
    assert!(insert.len() > 1 << 20);
    assert_eq!(parse_statements(&insert).count(), 1);
    let list = (0..100_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    parsed(&format!("SELECT * FROM s WHERE a IN ({list})"));
    let columns = (0..5_000).map(|n| format!("c{n} STRUCT<a INT, b TEXT> NOT NULL")).collect::<Vec<_>>().join(", ");
    parsed(&format!("CREATE STREAM s ({columns})"));
    let script = "SELECT 1;\n".repeat(20_000);
    assert_eq!(parse_statements(&script).filter(|s| s.is_ok()).count(), 20_000);
    let comment = format!("SELECT 1 /* {} */", "x".repeat(1 << 20));
    parsed(&comment);
}
