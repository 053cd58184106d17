//! What damage to a checkpoint leads to, through the real program: each file of it (and of the file sink's manifest) is
//! truncated, emptied, changed in one bit, or removed, and the query started again over one more input file. Either the
//! start is refused by a message that names the file, or the result is exactly that of the undamaged checkpoint.
//!
//! What came of each is in `tests/damage.out`, for a person to review; `UPDATE_EXPECT=1 cargo test damage` writes it anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

/// A checkpoint as a run has left it, and how its query is started.
struct Scene {
    title: &'static str,
    /// The query, from INTO to its mode, and how its result is read; `$TMP` is the folder of the checkpoint and sink.
    query: &'static str,
    result: &'static str,
    /// Input files of the first run: a batch each.
    files: u64,
    /// Where the second run, over one more file, dies. `None`: it ends well.
    dies_at: Option<&'static str>,
    /// Files that one damage takes together, as nothing needs them: `state/aggregate/` up to `48.delta`.
    together: &'static [(&'static str, std::ops::RangeInclusive<u64>, &'static str)],
}

const SCENES: &[Scene] = &[
    Scene {
        title: "windows INTO TABLE in UPDATE mode; state has a snapshot and deltas; the last batch died before its commit",
        query: "INTO TABLE r AS SELECT window.start AS start, k, count(*) AS n, sum(v) AS total FROM s
                GROUP BY window(ts, '10 seconds'), k OUTPUT MODE UPDATE",
        result: "SELECT * FROM r ORDER BY start, k;",
        files: 51,
        dies_at: Some("commit.before"),
        together: &[
            ("cp/offsets/", 0..=50, ""),
            ("cp/commits/", 0..=50, ""),
            ("cp/state/aggregate/", 0..=49, ".delta"),
            ("cp/state/result/", 0..=49, ".delta"),
        ],
    },
    Scene {
        title: "windows into a file sink in APPEND mode; the last batch is committed",
        query: APPEND,
        result: READ_FILES,
        files: 4,
        dies_at: None,
        together: &[("cp/offsets/", 0..=3, ""), ("cp/commits/", 0..=3, "")],
    },
    Scene {
        title: "windows into a file sink in APPEND mode; the last batch died when it was logged and nothing of it done",
        query: APPEND,
        result: READ_FILES,
        files: 4,
        dies_at: Some("offsets.after"),
        together: &[("cp/offsets/", 0..=3, ""), ("cp/commits/", 0..=3, "")],
    },
];

const APPEND: &str = "INTO out AS SELECT window.start AS start, k, count(*) AS n, sum(v) AS total FROM s
                      GROUP BY window(ts, '10 seconds'), k OUTPUT MODE APPEND";
const READ_FILES: &str = "CREATE STREAM o (start TIMESTAMP, k STRING, n BIGINT, total BIGINT)
                            WITH (connector = 'file', path = '$TMP/out', format = 'json');
                          SELECT * FROM o ORDER BY start, k;";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Damage {
    Halved,
    Emptied,
    Flipped,
    Removed,
}

const DAMAGES: [Damage; 4] = [Damage::Halved, Damage::Emptied, Damage::Flipped, Damage::Removed];

impl Damage {
    fn word(self) -> &'static str {
        match self {
            Damage::Halved => "halved",
            Damage::Emptied => "emptied",
            Damage::Flipped => "one bit",
            Damage::Removed => "removed",
        }
    }

    fn apply(self, file: &Path) {
        if self == Damage::Removed {
            return fs::remove_file(file).expect("a file to remove");
        }
        let mut bytes = fs::read(file).expect("a file to damage");
        let half = bytes.len() / 2;
        match self {
            Damage::Halved => bytes.truncate(half),
            Damage::Emptied => bytes.clear(),
            Damage::Flipped => bytes[half] ^= 1 << 3,
            Damage::Removed => {}
        }
        fs::write(file, bytes).expect("a damaged file");
    }
}

/// A checkpoint that was made, with the result that it leads to while it is whole.
struct Made {
    scene: &'static Scene,
    /// Holds `in`, `cp` and perhaps `out`.
    folder: TempDir,
    id: String,
    /// Standard output and standard error of the undamaged restart.
    wanted: (String, String),
}

/// One file, or several that are damaged together, and what is shown for them.
struct Target {
    shown: String,
    paths: Vec<String>,
}

/// Rows in order of time but for two seconds, half as long as the watermark waits.
fn write_input(folder: &Path, file: u64) {
    fs::create_dir_all(folder).expect("the input folder");
    let mut text = String::new();
    for row in 0..8u64 {
        let n = file * 8 + row;
        let second = n.saturating_sub(n * 7 % 3);
        let (minute, second) = (second / 60, second % 60);
        text += &format!("{{\"ts\":\"2026-01-01T00:{minute:02}:{second:02}\",\"k\":\"k{}\",\"v\":{n}}}\n", n * n % 3);
    }
    fs::write(folder.join(format!("part-{file:03}.json")), text).expect("an input file");
}

/// Runs `then` behind the START of the scene's query, whose input is in `input` and all else in `root`.
fn levada(scene: &Scene, input: &Path, root: &Path, trigger: &str, then: &str) -> Output {
    let script = format!(
        "SET clock = 'manual'; SET partitions = 2;
         CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '4 seconds')
           WITH (connector = 'file', path = '{}', format = 'json', max_files_per_trigger = 1);
         CREATE SINK out WITH (connector = 'file', path = '$TMP/out', format = 'json');
         START QUERY q {} TRIGGER {trigger} CHECKPOINT '$TMP/cp' WITH (min_batches_to_retain = 2);
         {then}",
        input.display(),
        scene.query
    );
    let script = script.replace("$TMP", &root.display().to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_levada"));
    command.args(["--format", "csv", "--timeout", "120s", "-c", &script]).output().expect("levada runs")
}

/// Takes the query up again to the end of its input, and reads its result.
fn restart(scene: &Scene, input: &Path, root: &Path) -> Output {
    let then = format!("AWAIT QUERY q TIMEOUT '60 seconds';\n{}", scene.result);
    levada(scene, input, root, "AVAILABLE NOW", &then)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn make(scene: &'static Scene) -> Made {
    let folder = TempDir::new().expect("a folder");
    let (root, input) = (folder.path(), folder.path().join("in"));
    (0..scene.files).for_each(|file| write_input(&input, file));
    let output = levada(scene, &input, root, "MANUAL", "STEP QUERY q 1000 BATCHES;");
    assert!(output.status.success(), "{}", text(&output.stderr));
    write_input(&input, scene.files);
    let crash = scene.dies_at.map_or(String::new(), |point| format!("CRASH QUERY q AT '{point}';"));
    let output = levada(scene, &input, root, "MANUAL", &format!("{crash} STEP QUERY q;"));
    let died = text(&output.stderr).contains("failpoint");
    assert!(died == scene.dies_at.is_some() && died != output.status.success(), "{}", text(&output.stderr));
    write_input(&input, scene.files + 1);

    let metadata = fs::read_to_string(root.join("cp/metadata")).expect("the metadata");
    let id = metadata.split("\"id\":\"").nth(1).and_then(|rest| rest.get(..36)).expect("an id").to_string();
    let copy = TempDir::new().expect("a folder");
    copy_scene(root, copy.path());
    let output = restart(scene, &input, copy.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let whole = TempDir::new().expect("a folder");
    let at_once = restart(scene, &input, whole.path());
    assert_eq!(text(&output.stdout), text(&at_once.stdout), "{}: not what an uninterrupted run gives", scene.title);
    assert!(output.stdout.iter().filter(|b| **b == b'\n').count() > 5, "too little to be a test");
    let wanted = (text(&output.stdout), text(&output.stderr).replace(&copy.path().display().to_string(), "$TMP"));
    Made { scene, id, wanted, folder }
}

/// Copies the checkpoint and the sink's files.
fn copy_scene(from: &Path, to: &Path) {
    for folder in ["cp", "out"] {
        for file in files(&from.join(folder)) {
            let target = to.join(file.strip_prefix(from).expect("a path below"));
            fs::create_dir_all(target.parent().expect("a folder above")).expect("a folder");
            fs::copy(&file, &target).expect("a copy");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|e| e.expect("an entry").path()) {
        if path.is_dir() { found.append(&mut files(&path)) } else { found.push(path) }
    }
    found
}

/// All that is to be damaged, in an order that a person can follow. Part files of the sink are data, not logs.
fn targets(made: &Made) -> Vec<Target> {
    let root = made.folder.path();
    let all = files(&root.join("cp")).into_iter().chain(files(&root.join("out/_levada")));
    let mut found: BTreeMap<(String, u64, String), Target> = BTreeMap::new();
    for path in all {
        let path = path.strip_prefix(root).expect("a path below").display().to_string();
        let (folder, name) = path.rsplit_once('/').map(|(f, n)| (format!("{f}/"), n)).expect("a folder");
        let number: String = name.chars().take_while(char::is_ascii_digit).collect();
        let ending = name[number.len()..].to_string();
        let number = number.parse().unwrap_or(0);
        let group = made.scene.together.iter().find(|(f, range, e)| {
            folder == *f && ending == *e && range.contains(&number) && name.starts_with(|c: char| c.is_ascii_digit())
        });
        let (key, shown) = match group {
            None => ((folder, number, ending), path.clone()),
            Some((f, range, e)) => ((folder, 0, ending), format!("{f}…{}{e}, all that are left", range.end())),
        };
        found.entry(key).or_insert_with(|| Target { shown, paths: Vec::new() }).paths.push(path);
    }
    found.into_values().collect()
}

/// Damages, restarts, and says what came of it; panics where it should not have.
fn verdict(made: &Made, target: &Target, damage: Damage) -> String {
    let copy = TempDir::new().expect("a folder");
    let root = copy.path();
    copy_scene(made.folder.path(), root);
    target.paths.iter().for_each(|path| damage.apply(&root.join(path)));
    let output = restart(made.scene, &made.folder.path().join("in"), root);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let what =
        format!("{}\n{} of {}: exit {:?}\n{stderr}", made.scene.title, damage.word(), target.shown, output.status);
    assert!(!stderr.contains("panicked") && !stderr.contains("internal error"), "{what}");
    let shown = stderr.replace(&root.display().to_string(), "$TMP");
    if output.status.success() {
        let difference = format!("--- wanted\n{}--- got\n{stdout}", made.wanted.0);
        assert!(stdout == made.wanted.0, "a wrong result: {what}\n{difference}");
        let notices = shown.lines().filter(|line| !made.wanted.1.lines().any(|usual| usual == *line));
        let notices: String = notices.map(|line| format!("; it said: {}", normal(line, made))).collect();
        return format!("recovered{notices}");
    }
    // The statement failed, or the query that it had started.
    assert!(matches!(output.status.code(), Some(1 | 4)), "neither refused nor recovered: {what}");
    let named = target.paths.iter().any(|path| stderr.contains(&root.join(path).display().to_string()));
    assert!(named, "the file is not named: {what}");
    let error = shown.lines().find(|line| line.starts_with("error")).unwrap_or_else(|| panic!("no error: {what}"));
    // error[E0400] -c #1:4:5: message
    let message = error.split_once("-c #1").map_or(error, |(_, rest)| rest);
    let message = message.trim_start_matches(|c: char| c == ':' || c == ' ' || c.is_ascii_digit());
    // What a query's notice has told is not told again.
    let told = message.strip_suffix(": see its notice");
    let told = told.and_then(|query| shown.lines().find_map(|line| line.strip_prefix(query)?.strip_prefix(": ")));
    format!("refused: {}", normal(told.unwrap_or(message), made))
}

/// A message without what may be another one in each run: ids, checksums, lengths.
fn normal(message: &str, made: &Made) -> String {
    let message = message.replace(&made.id, "$ID");
    let mut shown = String::new();
    for word in message.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let (digits, rest) = word.split_at(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len());
        let checksum = digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
        shown += if checksum { "<checksum>" } else { digits };
        shown += rest;
    }
    let Some((before, after)) = shown.split_once("it ends after ") else { return shown };
    format!("{before}it ends after <n>{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The lines of one target: damages with the same verdict share one.
fn lines(target: &Target, verdicts: &[String]) -> String {
    let mut shown: Vec<(String, &String)> = Vec::new();
    for (damage, verdict) in DAMAGES.iter().zip(verdicts) {
        match shown.iter_mut().find(|(_, v)| *v == verdict) {
            Some((words, _)) => *words += &format!(", {}", damage.word()),
            None => shown.push((damage.word().to_string(), verdict)),
        }
    }
    let lines: String = shown.iter().map(|(words, verdict)| format!("  {words}: {verdict}\n")).collect();
    format!("{}\n{lines}", target.shown)
}

#[test]
fn damage_is_refused_by_name_or_does_not_matter() {
    let made: Vec<Made> = std::thread::scope(|scope| {
        let makers: Vec<_> = SCENES.iter().map(|scene| scope.spawn(|| make(scene))).collect();
        makers.into_iter().map(|maker| maker.join().expect("a checkpoint")).collect()
    });
    let targets: Vec<(usize, Target)> =
        made.iter().enumerate().flat_map(|(n, made)| targets(made).into_iter().map(move |t| (n, t))).collect();
    let verdicts: Vec<Mutex<String>> = (0..targets.len() * DAMAGES.len()).map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = verdicts.get(n) else { return };
                    let (made_at, target) = &targets[n / DAMAGES.len()];
                    let damage = DAMAGES[n % DAMAGES.len()];
                    let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        verdict(&made[*made_at], target, damage)
                    }));
                    *slot.lock().expect("a slot") = judged.unwrap_or_else(|_| "WRONG".into());
                }
            });
        }
    });
    let verdicts: Vec<String> = verdicts.into_iter().map(|v| v.into_inner().expect("a verdict")).collect();
    let mut got = String::new();
    for (n, made) in made.iter().enumerate() {
        got += &format!("{}# {}\n", if n == 0 { "" } else { "\n" }, made.scene.title);
        for ((_, target), verdicts) in
            targets.iter().zip(verdicts.chunks(DAMAGES.len())).filter(|((at, _), _)| *at == n)
        {
            got += &lines(target, verdicts);
        }
    }
    assert!(!got.contains("WRONG"), "see the messages above\n{got}");
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/damage.out");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return fs::write(&expected, &got).expect("the expected verdicts");
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_else(|e| panic!("{}: {e}", expected.display()));
    assert!(wanted == got, "tests/damage.out differs\n--- expected\n{wanted}--- got\n{got}");
}
