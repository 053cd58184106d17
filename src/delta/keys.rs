//! Keys as bytes: equal keys have equal bytes, and bytes sort as the keys do (NULL first).
//!
//! The bytes live in memory only. They are arrow's row encoding, which may change between versions, and their
//! hash differs between processes; so neither is ever stored (state files hold plain columns).

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, FixedSizeListArray, Float16Array, Float32Array, Float64Array,
    GenericListArray, MapArray, OffsetSizeTrait, StructArray,
};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

use crate::error::{Error, Result};

/// Turns key columns into bytes and back.
pub struct KeyCodec {
    converter: RowConverter,
    /// Which columns hold floats somewhere inside and must be normalised first.
    floats: Vec<bool>,
    /// Columns as they are given equal those that [`KeyCodec::decode`] gives, and hold nothing else alive.
    plain: bool,
    hasher: foldhash::fast::FixedState,
}

/// The keys of some rows: bytes and a hash each.
pub struct Keys {
    /// Empty where there are no key columns.
    bytes: BinaryArray,
    pub hashes: Vec<u64>,
}

impl KeyCodec {
    /// A codec for key columns of these types, in this order.
    ///
    /// # Errors
    /// Unsupported, when a type has no order: a map, for one.
    pub fn new(fields: &[FieldRef]) -> Result<Self> {
        let sort = fields.iter().map(|f| SortField::new(f.data_type().clone())).collect();
        let converter =
            RowConverter::new(sort).map_err(|e| Error::unsupported(format!("these columns can't be a key: {e}")))?;
        let floats: Vec<bool> = fields.iter().map(|f| holds_float(f.data_type())).collect();
        let plain = fields.iter().all(|f| f.data_type().is_primitive()) && !floats.contains(&true);
        Ok(KeyCodec { converter, floats, plain, hasher: foldhash::fast::FixedState::with_seed(0x6c65_7661_6461) })
    }

    /// A codec that keeps the columns behind the first `groups` bit by bit: they are values, of which no two are one.
    ///
    /// # Errors
    /// As [`KeyCodec::new`].
    pub fn exact_behind(fields: &[FieldRef], groups: usize) -> Result<Self> {
        let mut codec = KeyCodec::new(fields)?;
        codec.floats.iter_mut().skip(groups).for_each(|float| *float = false);
        codec.plain = fields.iter().all(|f| f.data_type().is_primitive()) && !codec.floats.contains(&true);
        Ok(codec)
    }

    /// The keys of `rows` rows; `columns` as given to [`KeyCodec::new`], and possibly none at all.
    pub fn encode(&self, columns: &[ArrayRef], rows: usize) -> Result<Keys> {
        let columns: Vec<ArrayRef> = columns
            .iter()
            .zip(&self.floats)
            .map(|(c, f)| if *f { normalise(c) } else { Ok(c.clone()) })
            .collect::<Result<_>>()?;
        let encoded = if columns.is_empty() {
            return Ok(Keys { bytes: BinaryArray::from_vec(Vec::new()), hashes: vec![self.hash(&[]); rows] });
        } else {
            self.converter.convert_columns(&columns).map_err(internal)?
        };
        let bytes = encoded.try_into_binary().map_err(internal)?;
        let hashes = (0..rows).map(|row| self.hash(bytes.value(row))).collect();
        Ok(Keys { bytes, hashes })
    }

    /// Whether key columns can be kept as they were given, rather than made from the keys' bytes.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// The key columns of keys given as bytes.
    pub fn decode<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let parser = self.converter.parser();
        self.converter.convert_rows(keys.map(|k| parser.parse(k))).map_err(internal)
    }

    /// The hash of a key's bytes. Differs between builds; never stored.
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}

impl Keys {
    /// The bytes of one row's key.
    #[inline]
    pub fn bytes(&self, row: usize) -> &[u8] {
        if self.bytes.is_empty() { &[] } else { self.bytes.value(row) }
    }
}

/// Whether two keys are the same, without a call for short ones: most keys are one number, of nine bytes.
#[inline]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>(), a.last_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(first), Some(other), Some(last), Some(other_last)) if a.len() <= 16 => {
            first == other && last == other_last
        }
        _ => a == b,
    }
}

/// The partition of a key's hash, of `partitions`.
pub fn partition_of(hash: u64, partitions: usize) -> usize {
    ((u128::from(hash) * partitions as u128) >> 64) as usize
}

/// The rows of each partition, in their order.
pub fn split(keys: &Keys, partitions: usize) -> Vec<Vec<u32>> {
    let mut parts = vec![Vec::with_capacity(keys.hashes.len() / partitions + 16); partitions];
    for (row, hash) in keys.hashes.iter().enumerate() {
        parts[partition_of(*hash, partitions)].push(row as u32);
    }
    parts
}

fn internal(error: ArrowError) -> Error {
    Error::internal(format!("key encoding: {error}"))
}

fn holds_float(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::Map(f, _) => {
            holds_float(f.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|f| holds_float(f.data_type())),
        DataType::Dictionary(_, value) => holds_float(value),
        _ => false,
    }
}

/// All NaN become one, −0.0 becomes +0.0, inside structs and lists too.
pub fn normalise(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float16 => {
            let values = array.as_primitive::<arrow::datatypes::Float16Type>();
            Arc::new(values.unary::<_, arrow::datatypes::Float16Type>(|v| {
                if v.is_nan() {
                    half::f16::NAN
                } else if v == half::f16::ZERO {
                    half::f16::ZERO
                } else {
                    v
                }
            })) as Arc<Float16Array>
        }
        DataType::Float32 => {
            let values = array.as_primitive::<arrow::datatypes::Float32Type>();
            Arc::new(values.unary::<_, arrow::datatypes::Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 }))
                as Arc<Float32Array>
        }
        DataType::Float64 => {
            let values = array.as_primitive::<arrow::datatypes::Float64Type>();
            Arc::new(values.unary::<_, arrow::datatypes::Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }))
                as Arc<Float64Array>
        }
        DataType::Struct(fields) if holds_float(array.data_type()) => {
            let values = array.as_struct();
            let columns = values.columns().iter().map(normalise).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, values.nulls().cloned()).map_err(internal)?)
        }
        DataType::List(field) if holds_float(array.data_type()) => list::<i32>(array, field)?,
        DataType::LargeList(field) if holds_float(array.data_type()) => list::<i64>(array, field)?,
        DataType::FixedSizeList(field, size) if holds_float(array.data_type()) => {
            let values = array.as_fixed_size_list();
            let inner = normalise(values.values())?;
            Arc::new(
                FixedSizeListArray::try_new(field.clone(), *size, inner, values.nulls().cloned()).map_err(internal)?,
            )
        }
        DataType::Map(field, sorted) if holds_float(array.data_type()) => {
            let values = array.as_map();
            let entries: ArrayRef = Arc::new(values.entries().clone());
            let entries = normalise(&entries)?.as_struct().clone();
            let map =
                MapArray::try_new(field.clone(), values.offsets().clone(), entries, values.nulls().cloned(), *sorted);
            Arc::new(map.map_err(internal)?)
        }
        _ => array.clone(),
    })
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef, field: &FieldRef) -> Result<ArrayRef> {
    let values = array.as_list::<O>();
    let inner = normalise(values.values())?;
    let list = GenericListArray::<O>::try_new(field.clone(), values.offsets().clone(), inner, values.nulls().cloned());
    Ok(Arc::new(list.map_err(internal)?))
}
