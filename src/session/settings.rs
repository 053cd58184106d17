//! SET, RESET, SHOW of settings: ours, and DataFusion's under `datafusion.`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow::array::StringArray;
use datafusion::logical_expr::{LogicalPlan, ResetVariable, SetVariable, Statement as DfPlan};

use super::{Answer, Session, lock};
use crate::clock::Clock;
use crate::error::{Code, Error, Result, closest};
use crate::execution::QuerySettings;
use crate::options::{OptionEntry, OptionKind, OptionSpec, OptionValue, Options, parse_interval, snake_case};
use crate::parser::{Name, SetValue};

/// What `START QUERY … WITH (…)` may hold.
pub(super) const QUERY_OPTIONS: &[OptionSpec] = &[
    MIN_BATCHES,
    RECENT_PROGRESS,
    MAX_BATCH_BYTES,
    PARTITIONS,
    NO_DATA_BATCHES,
    LEASE_TIMEOUT,
    OptionSpec {
        name: "dead_letter",
        kind: OptionKind::Text,
        help: "a sink that late rows, and bad records of streams that name none themselves, are written to",
    },
    OptionSpec {
        name: "static_replay",
        kind: OptionKind::OneOf(&["logged", "latest"]),
        help: "what a replayed batch does when a static table has changed since: fail (logged), or take it as it is now",
    },
];

/// The settings of a session.
pub(super) const SETTINGS: &[OptionSpec] = &[
    OptionSpec {
        name: "clock",
        kind: OptionKind::OneOf(&["system", "manual"]),
        help: "processing time: the system's, or one that only ADVANCE CLOCK moves",
    },
    LEASE_TIMEOUT,
    MAX_BATCH_BYTES,
    MIN_BATCHES,
    OptionSpec {
        name: "multiple_watermark_policy",
        kind: OptionKind::OneOf(&["min", "max"]),
        help: "the watermark of a query with several inputs: the smallest of theirs, or the largest",
    },
    NO_DATA_BATCHES,
    PARTITIONS,
    RECENT_PROGRESS,
    OptionSpec { name: "timezone", kind: OptionKind::Text, help: "the zone that now() and its kin are given in" },
];

const MIN_BATCHES: OptionSpec = OptionSpec {
    name: "min_batches_to_retain",
    kind: OptionKind::Positive,
    help: "how many batches a checkpoint keeps at the least",
};
const RECENT_PROGRESS: OptionSpec = OptionSpec {
    name: "recent_progress",
    kind: OptionKind::Positive,
    help: "how many progress documents a query keeps",
};
const MAX_BATCH_BYTES: OptionSpec = OptionSpec {
    name: "max_batch_bytes",
    kind: OptionKind::Bytes,
    help: "about how much a batch reads at the most where its sources set no limit",
};
const PARTITIONS: OptionSpec =
    OptionSpec { name: "partitions", kind: OptionKind::Positive, help: "how many partitions work is spread over" };
const NO_DATA_BATCHES: OptionSpec = OptionSpec {
    name: "no_data_batches",
    kind: OptionKind::Bool,
    help: "whether a batch runs without input when the watermark alone can close something",
};

const LEASE_TIMEOUT: OptionSpec = OptionSpec {
    name: "lease_timeout",
    kind: OptionKind::Interval,
    help: "a checkpoint in an object store may be taken over when its query has given no sign of life for so long",
};

const TIME_ZONE: &str = "datafusion.execution.time_zone";
/// More threads and open files than this help nobody.
const MAX_PARTITIONS: u64 = 1024;

impl Session {
    pub(super) fn set(&self, name: &Name, value: &SetValue) -> Result<Answer> {
        let value = match value {
            SetValue::Default => return self.reset_as(name, "SET"),
            SetValue::Text(text) => OptionValue::Text(text.clone()),
            SetValue::Number(number) => OptionValue::Number(number.clone()),
            SetValue::Bool(value) => OptionValue::Bool(*value),
        };
        let setting = own_name(&name.value);
        if setting.starts_with("datafusion.") {
            self.known_to_datafusion(name, &setting)?;
            self.set_datafusion(&setting, text(&value)).map_err(|e| {
                let message = format!("{setting} can't be '{}': {e}", text(&value));
                Error::invalid_at(name.span, message).help(format!("SHOW {setting} says what it is now"))
            })?;
            return Ok(Answer::done("SET"));
        }
        known(name, &setting)?;
        let entry = OptionEntry { name: setting.clone(), value, span: name.span };
        let options = Options { entries: vec![entry.clone()] };
        options.check("the session", SETTINGS)?;
        match setting.as_str() {
            "clock" => self.set_clock(name, text(&entry.value))?,
            "timezone" => self.set_timezone(name, text(&entry.value))?,
            _ => {
                let mut settings = lock(&self.settings).clone();
                apply(&mut settings, &options, &entry)?;
                self.take_settings(settings)?;
            }
        }
        Ok(Answer::done("SET"))
    }

    pub(super) fn reset(&self, name: &Name) -> Result<Answer> {
        self.reset_as(name, "RESET")
    }

    fn reset_as(&self, name: &Name, tag: &str) -> Result<Answer> {
        let setting = own_name(&name.value);
        if setting.starts_with("datafusion.") {
            self.known_to_datafusion(name, &setting)?;
            self.reset_datafusion(&setting).map_err(|e| e.at(Some(name.span)))?;
            return Ok(Answer::done(tag));
        }
        known(name, &setting)?;
        let (mut settings, default) = (lock(&self.settings).clone(), QuerySettings::default());
        match setting.as_str() {
            "clock" => self.set_clock(name, "system")?,
            "timezone" => self.reset_datafusion(TIME_ZONE)?,
            "lease_timeout" => settings.lease_timeout = default.lease_timeout,
            "max_batch_bytes" => settings.max_batch_bytes = default.max_batch_bytes,
            "min_batches_to_retain" => settings.min_batches_to_retain = default.min_batches_to_retain,
            "multiple_watermark_policy" => settings.watermark_policy_max = default.watermark_policy_max,
            "no_data_batches" => settings.no_data_batches = default.no_data_batches,
            "partitions" => settings.partitions = default.partitions,
            "recent_progress" => settings.recent_progress = default.recent_progress,
            other => return Err(Error::internal(format!("setting {other} has no default"))),
        }
        self.take_settings(settings)?;
        Ok(Answer::done(tag))
    }

    /// `SHOW name`
    pub(super) fn show_setting(&self, name: &Name) -> Result<Answer> {
        let setting = own_name(&name.value);
        if setting.starts_with("datafusion.") {
            self.known_to_datafusion(name, &setting)?;
        } else {
            known(name, &setting)?;
        }
        let all = self.all_settings();
        let full = if setting.starts_with("datafusion.") { setting } else { format!("levada.{setting}") };
        let found = all.into_iter().filter(|(key, ..)| *key == full).map(|(key, value, _)| (key, value));
        let (names, values): (Vec<_>, Vec<_>) = found.map(|(k, v)| (Some(short(&k).to_string()), v)).unzip();
        Answer::table(vec![
            ("name", Arc::new(StringArray::from(names))),
            ("value", Arc::new(StringArray::from(values))),
        ])
    }

    /// `SHOW ALL`
    pub(super) fn show_settings(&self) -> Result<Answer> {
        let all = self.all_settings();
        Answer::table(vec![
            ("name", Arc::new(all.iter().map(|(name, ..)| Some(name.as_str())).collect::<StringArray>())),
            ("value", Arc::new(all.iter().map(|(_, value, _)| value.as_deref()).collect::<StringArray>())),
            ("description", Arc::new(all.iter().map(|(.., help)| Some(*help)).collect::<StringArray>())),
        ])
    }

    /// Name, value, description; sorted by name.
    pub(super) fn all_settings(&self) -> Vec<(String, Option<String>, &'static str)> {
        let state = self.context.state();
        let mut all: Vec<_> =
            state.config_options().entries().into_iter().map(|e| (e.key, e.value, e.description)).collect();
        all.extend(state.runtime_env().config_entries().into_iter().map(|e| (e.key, e.value, e.description)));
        all.extend(SETTINGS.iter().map(|s| (format!("levada.{}", s.name), self.value_of(s.name), s.help)));
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn value_of(&self, setting: &str) -> Option<String> {
        let settings = lock(&self.settings);
        Some(match setting {
            "clock" => if self.clock().is_manual() { "manual" } else { "system" }.into(),
            "lease_timeout" => match settings.lease_timeout.as_millis() {
                millis if millis % 1_000 != 0 => format!("{millis} milliseconds"),
                millis => format!("{} seconds", millis / 1_000),
            },
            "max_batch_bytes" => settings.max_batch_bytes.to_string(),
            "min_batches_to_retain" => settings.min_batches_to_retain.to_string(),
            "multiple_watermark_policy" => if settings.watermark_policy_max { "max" } else { "min" }.into(),
            "no_data_batches" => settings.no_data_batches.to_string(),
            "partitions" => settings.partitions.to_string(),
            "recent_progress" => settings.recent_progress.to_string(),
            "timezone" => return self.context.state().config_options().execution.time_zone.clone(),
            _ => return None,
        })
    }

    fn take_settings(&self, settings: QuerySettings) -> Result<()> {
        let before = std::mem::replace(&mut *lock(&self.settings), settings.clone());
        if before.partitions != settings.partitions {
            self.set_datafusion("datafusion.execution.target_partitions", &settings.partitions.to_string())?;
        }
        Ok(())
    }

    fn set_clock(&self, name: &Name, value: &str) -> Result<()> {
        let manual = value.eq_ignore_ascii_case("manual");
        let mut clock = self.clock.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if clock.is_manual() == manual {
            return Ok(());
        }
        if self.started.load(Ordering::SeqCst) {
            let message = "the clock can't be changed once a query was started";
            return Err(Error::invalid_at(name.span, message).help("SET clock before the first START"));
        }
        *clock = if manual { Clock::manual(0) } else { Clock::system() };
        Ok(())
    }

    fn set_timezone(&self, name: &Name, zone: &str) -> Result<()> {
        if zone.parse::<arrow::array::timezone::Tz>().is_err() {
            return Err(Error::invalid_at(name.span, format!("unknown time zone '{zone}'"))
                .coded(Code::OptionValue)
                .help("a name such as 'Europe/Berlin', or an offset such as '+02:00'"));
        }
        self.set_datafusion(TIME_ZONE, zone)
    }

    fn set_datafusion(&self, variable: &str, value: &str) -> Result<()> {
        let (variable, value) = (variable.to_string(), value.to_string());
        self.datafusion_statement(DfPlan::SetVariable(SetVariable { variable, value }))
    }

    fn reset_datafusion(&self, variable: &str) -> Result<()> {
        self.datafusion_statement(DfPlan::ResetVariable(ResetVariable { variable: variable.to_string() }))
    }

    fn datafusion_statement(&self, statement: DfPlan) -> Result<()> {
        self.block_on(async {
            self.context.execute_logical_plan(LogicalPlan::Statement(statement)).await?;
            Ok(())
        })
    }

    fn known_to_datafusion(&self, name: &Name, setting: &str) -> Result<()> {
        let all = self.all_settings();
        if all.iter().any(|(key, ..)| key == setting) {
            return Ok(());
        }
        Err(unknown(name, setting, all.iter().map(|(key, ..)| key.as_str())))
    }
}

/// Takes one option into a query's settings.
///
/// # Errors
/// A value that is out of range; its kind was checked before.
pub(super) fn apply(settings: &mut QuerySettings, options: &Options, entry: &OptionEntry) -> Result<()> {
    let name = entry.name.as_str();
    let missing = || Error::internal(format!("option {name} has no value"));
    let count = || options.count(name)?.ok_or_else(missing);
    match name {
        "min_batches_to_retain" => settings.min_batches_to_retain = count()?,
        "recent_progress" => settings.recent_progress = usize::try_from(count()?).unwrap_or(usize::MAX),
        "max_batch_bytes" => settings.max_batch_bytes = options.bytes(name)?.ok_or_else(missing)?,
        "partitions" => match count()? {
            n if n <= MAX_PARTITIONS => settings.partitions = n as usize,
            n => {
                let message = format!("option partitions is '{n}'; it takes 1 to {MAX_PARTITIONS}");
                return Err(Error::invalid_at(entry.span, message).coded(Code::OptionValue));
            }
        },
        "lease_timeout" => settings.lease_timeout = lease_timeout(options, entry)?,
        "no_data_batches" => settings.no_data_batches = options.bool(name)?.ok_or_else(missing)?,
        // A sink: START opens it.
        "dead_letter" => {}
        "static_replay" => settings.static_replay_latest = is(options, name, "latest"),
        "multiple_watermark_policy" => settings.watermark_policy_max = is(options, name, "max"),
        other => return Err(Error::internal(format!("option {other} is checked and not taken"))),
    }
    Ok(())
}

/// Shorter than a few requests take, it would be lost while its holder lives; after much longer nobody waits for it.
fn lease_timeout(options: &Options, entry: &OptionEntry) -> Result<Duration> {
    let parsed = options.parse(&entry.name, "an interval from 1 second to 1 hour, in whole milliseconds", |text| {
        let millis = parse_interval(text).filter(|micros| micros % 1_000 == 0)? / 1_000;
        u64::try_from(millis).ok().filter(|millis| (1_000..=3_600_000).contains(millis))
    })?;
    parsed.map(Duration::from_millis).ok_or_else(|| Error::internal("option lease_timeout has no value"))
}

fn is(options: &Options, name: &str, word: &str) -> bool {
    options.text(name).is_some_and(|text| text.eq_ignore_ascii_case(word))
}

/// The name without `levada.`, in snake_case.
fn own_name(written: &str) -> String {
    let lower = written.strip_prefix("levada.").unwrap_or(written);
    if lower.starts_with("datafusion.") { lower.to_string() } else { snake_case(lower) }
}

fn short(name: &str) -> &str {
    name.strip_prefix("levada.").unwrap_or(name)
}

fn known(name: &Name, setting: &str) -> Result<()> {
    match SETTINGS.iter().any(|s| s.name == setting) {
        true => Ok(()),
        false => Err(unknown(name, setting, SETTINGS.iter().map(|s| s.name))),
    }
}

fn unknown<'a>(name: &Name, setting: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let error = Error::invalid_at(name.span, format!("unknown setting {setting}")).coded(Code::UnknownSetting);
    match closest(setting, known) {
        Some(name) => error.help(format!("did you mean {name}?")),
        None => error.help("SHOW ALL lists the settings"),
    }
}

fn text(value: &OptionValue) -> &str {
    match value {
        OptionValue::Text(text) | OptionValue::Number(text) => text,
        OptionValue::Bool(true) => "true",
        OptionValue::Bool(false) => "false",
    }
}
