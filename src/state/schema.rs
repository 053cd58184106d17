//! What an operator's state is made of: `state/<operator>/schema`.
//!
//! It is written before the operator's first delta and never changed. A restart compares it with what the operator
//! would write now; the verdict over a difference is not made here.

use std::collections::BTreeMap;

use arrow::datatypes::Fields;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Store, text};
use crate::error::{Error, Result, in_sql};

/// Keys, values and versions of what computes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSchema {
    /// The operator's stable name.
    pub operator: String,
    pub keys: Vec<StateField>,
    pub values: Vec<StateField>,
    /// The version of each function whose states are among the values.
    pub functions: BTreeMap<String, String>,
    /// What makes the rows beside what names say, where what is remembered fits nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// One column of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateField {
    pub name: String,
    /// As arrow writes the type: `Int64`, `Timestamp(µs)`.
    #[serde(rename = "type")]
    pub data_type: String,
    pub nullable: bool,
}

impl StateSchema {
    /// The schema of an operator's state.
    pub fn new(operator: &str, keys: &Fields, values: &Fields, functions: BTreeMap<String, String>) -> Self {
        StateSchema {
            operator: operator.to_string(),
            keys: fields(keys),
            values: fields(values),
            functions,
            text: None,
        }
    }

    /// The same, of rows that only this text makes.
    pub fn made_by(self, text: Option<String>) -> Self {
        StateSchema { text, ..self }
    }

    /// Eight hex digits that another schema will hardly have: what each state file carries.
    pub fn fingerprint(&self) -> Result<String> {
        Ok(format!("{:08x}", crc32c::crc32c(self.to_line()?.as_bytes())))
    }

    fn to_line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::internal(format!("a state schema can't be written: {e}")))
    }
}

impl std::fmt::Display for StateSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = |fields: &[StateField]| {
            let column = |field: &StateField| {
                let name = field.name.split_once(':').map_or(field.name.as_str(), |(_, name)| name);
                format!("{name} {}", field.data_type)
            };
            fields.iter().map(column).collect::<Vec<_>>().join(", ")
        };
        write!(f, "keys ({}), values ({})", columns(&self.keys), columns(&self.values))?;
        // Those whose states are among the values are seen there.
        let seen = |function: &str| {
            let column =
                |field: &StateField| field.name.split_once(':').is_some_and(|(_, name)| name.starts_with(function));
            self.values.iter().any(column)
        };
        let others: Vec<&str> = self.functions.keys().map(String::as_str).filter(|name| !seen(name)).collect();
        if !others.is_empty() {
            write!(f, ", functions ({})", others.join(", "))?;
        }
        self.text.as_ref().map_or(Ok(()), |text| write!(f, ", made by {text}"))
    }
}

/// The refusal of a restart under a changed query: an operator's state in the checkpoint and in the query.
pub fn changed(stored: Option<&StateSchema>, wanted: Option<&StateSchema>) -> Error {
    let operator = stored.or(wanted).map(|schema| schema.operator.as_str()).unwrap_or_default();
    let (noun, none) = match operator {
        "result" => ("the result table".to_string(), "no result table".to_string()),
        operator => (format!("operator {operator}"), format!("no {operator}")),
    };
    let what = if stored.is_some() { "would lose its state" } else { "would lack what was read before" };
    let shown = |schema: Option<&StateSchema>| schema.map_or(none.clone(), StateSchema::to_string);
    let (was, is) = (shown(stored), shown(wanted));
    // Of two types that SQL calls the same, arrow's names tell the difference.
    let (was, is) = if in_sql(&was) == in_sql(&is) { (was, is) } else { (in_sql(&was), in_sql(&is)) };
    let message =
        format!("the query has changed: {noun} {what}\n  in the checkpoint: {was}\n  in the query:      {is}");
    Error::invalid(message).help("start it with a new CHECKPOINT, or with the query it was made for")
}

fn fields(fields: &Fields) -> Vec<StateField> {
    let field = |field: &arrow::datatypes::FieldRef| StateField {
        name: field.name().clone(),
        data_type: field.data_type().to_string(),
        nullable: field.is_nullable(),
    };
    fields.iter().map(field).collect()
}

/// Writes `<folder>/schema`.
///
/// # Errors
/// Conflict: it is there. Io.
pub fn write_schema(store: &dyn Store, folder: &str, schema: &StateSchema) -> Result<()> {
    let bytes = text::encode(&[schema.to_line()?]);
    store.put_new(&format!("{folder}/schema"), &mut |out| out.write_all(&bytes))
}

/// Reads `<folder>/schema`; `None` where the folder holds nothing yet.
///
/// # Errors
/// Corrupt, by path: damaged, or missing beside state files.
pub fn read_schema(store: &dyn Store, folder: &str) -> Result<Option<StateSchema>> {
    let path = format!("{folder}/schema");
    let described = store.describe(&path);
    let Some(bytes) = store.get(&path)? else {
        return match store.list(folder)?.first() {
            None => Ok(None),
            Some(file) => Err(Error::corrupt(described, format!("the file is missing, though {file} is beside it"))),
        };
    };
    let mut lines = text::decode(&described, &bytes)?;
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(Error::corrupt(described, "it should hold one line behind the first"));
    };
    serde_json::from_str(line).map(Some).map_err(|e| Error::corrupt(described, format!("not a state schema: {e}")))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, TimeUnit};

    use super::*;
    use crate::checkpoint::LocalStore;

    fn schema() -> StateSchema {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let list = DataType::List(Field::new("item", DataType::Utf8, true).into());
        let keys = Fields::from(vec![Field::new("channel", DataType::Utf8, true), Field::new("start", time, false)]);
        let values = Fields::from(vec![
            Field::new("count", DataType::Int64, false),
            Field::new("sum", DataType::Decimal128(38, 4), true),
            Field::new("all", list, true),
        ]);
        StateSchema::new("aggregate", &keys, &values, BTreeMap::from([("count".into(), "55".into())]))
    }

    #[test]
    fn types_are_spelled_as_in_files_that_exist() {
        let schema = schema();
        let types: Vec<_> = schema.keys.iter().chain(&schema.values).map(|f| f.data_type.as_str()).collect();
        assert_eq!(types, ["Utf8", "Timestamp(µs, \"UTC\")", "Int64", "Decimal128(38, 4)", "List(Utf8)"]);
        assert_eq!(schema.fingerprint().unwrap(), "8f175f73");
    }

    #[test]
    fn it_is_as_documented() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        write_schema(&store, "a", &schema()).unwrap();
        let text = String::from_utf8(store.get("a/schema").unwrap().unwrap()).unwrap();
        let page = include_str!("../../docs/checkpoint.md");
        assert!(page.contains(&format!("```text\n{text}```")), "docs/checkpoint.md does not show:\n{text}");
    }

    #[test]
    fn a_result_is_as_documented() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        let keys = Fields::from(vec![Field::new("0:channel", DataType::Utf8View, true)]);
        let values = Fields::from(vec![Field::new("count", DataType::Int64, false)]);
        let schema = StateSchema::new("result", &keys, &values, BTreeMap::new());
        let schema = schema.made_by(Some("SELECT channel; HAVING count(*) > Int64(1)".into()));
        write_schema(&store, "r", &schema).unwrap();
        assert_eq!(read_schema(&store, "r").unwrap(), Some(schema));
        let text = String::from_utf8(store.get("r/schema").unwrap().unwrap()).unwrap();
        let page = include_str!("../../docs/checkpoint.md");
        assert!(page.contains(&format!("```text\n{text}```")), "docs/checkpoint.md does not show:\n{text}");
    }

    #[test]
    fn it_comes_back_and_every_damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        assert_eq!(read_schema(&store, "state/a").unwrap(), None);
        write_schema(&store, "state/a", &schema()).unwrap();
        assert_eq!(read_schema(&store, "state/a").unwrap(), Some(schema()));
        assert!(matches!(write_schema(&store, "state/a", &schema()), Err(Error::Conflict { .. })));
        let file = dir.path().join("state/a/schema");
        let good = std::fs::read(&file).unwrap();
        for at in (0..good.len()).step_by(7) {
            let mut bad = good.clone();
            bad[at] ^= 4;
            std::fs::write(&file, &bad).unwrap();
            assert!(matches!(read_schema(&store, "state/a"), Err(Error::Corrupt { .. })), "byte {at}");
            std::fs::write(&file, &good[..at]).unwrap();
            assert!(matches!(read_schema(&store, "state/a"), Err(Error::Corrupt { .. })), "length {at}");
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::write(dir.path().join("state/a/0.delta"), "x").unwrap();
        let message = read_schema(&store, "state/a").unwrap_err().to_string();
        assert!(message.contains("state/a/schema: the file is missing, though 0.delta is beside it"), "{message}");
    }
}
