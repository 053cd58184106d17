//! One walk through a place: the files that are there now, and are meant.
//!
//! A directory whose manifest says what is in it is not looked into. Symbolic links are followed; one that leads back
//! to a directory it was reached through is passed over.

use std::collections::BTreeMap;

use super::files::{FileEntry, Files, Node, Tree, join, neither};
use super::glob::{Part, covers, matches};
use super::place::{MANIFEST_FOLDER, Manifest, Promised, is_hidden};
use crate::error::{Error, Result};

/// No real tree is this deep.
const MAX_DEPTH: usize = 100;

/// A walk.
pub struct Walk<'p> {
    files: &'p dyn Files,
    manifest: Option<Manifest>,
    tree: Box<dyn Tree + 'p>,
    /// By path.
    found: BTreeMap<String, FileEntry>,
    /// The directories that are being looked into, outermost first.
    above: Vec<(u64, u64)>,
}

impl<'p> Walk<'p> {
    /// Begins a walk. `manifest`: `None` refuses a directory that has one.
    pub fn new(files: &'p dyn Files, manifest: Option<Manifest>) -> Self {
        Walk { files, manifest, tree: files.tree(), found: BTreeMap::new(), above: Vec::new() }
    }

    /// All files below the root, by path.
    ///
    /// # Errors
    /// See [`super::place::Place::list`].
    pub fn all(mut self) -> Result<Vec<FileEntry>> {
        self.inside("", |walk| walk.walk("", 0))?;
        Ok(self.found.into_values().collect())
    }

    /// The files that any of the globs matches, and those below the directories that it matches.
    ///
    /// # Errors
    /// See [`super::place::Place::list`].
    pub fn matched(mut self, globs: &[Vec<Part>]) -> Result<Vec<FileEntry>> {
        if globs.iter().any(|parts| parts.len() > 1) {
            self.tree.expect_all("")?;
        }
        globs.iter().try_for_each(|parts| self.descend("", parts, 0))?;
        Ok(self.found.into_values().collect())
    }

    /// Adds what stands at a path: a file, or all files below a directory. What is gone since it was listed is
    /// left out.
    fn add(&mut self, path: &str, depth: usize) -> Result<()> {
        match self.tree.look(path)? {
            Some(Node::Directory) => self.inside(path, |walk| walk.walk(path, depth + 1)),
            Some(Node::File(file)) => {
                self.found.insert(path.to_string(), file);
                Ok(())
            }
            Some(Node::Other) => Err(neither(&self.files.shown(path))),
            None => Ok(()),
        }
    }

    /// Looks into a directory, unless it is one that is being looked into already.
    fn inside(&mut self, directory: &str, look: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let identity = self.tree.identity(directory)?;
        if identity.is_some_and(|identity| self.above.contains(&identity)) {
            return Ok(());
        }
        let depth = self.above.len();
        self.above.extend(identity);
        let looked = look(self);
        self.above.truncate(depth);
        looked
    }

    fn is_directory(&mut self, path: &str) -> Result<bool> {
        Ok(self.tree.look(path)? == Some(Node::Directory))
    }

    fn has_manifest(&mut self, directory: &str) -> Result<bool> {
        Ok(self.tree.look(&join(directory, MANIFEST_FOLDER))? == Some(Node::Directory))
    }

    fn walk(&mut self, directory: &str, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            let shown = self.files.shown(directory);
            return Err(Error::invalid(format!("{shown}: directories are nested more than {MAX_DEPTH} deep")));
        }
        self.tree.expect_all(directory)?;
        if self.has_manifest(directory)? {
            return self.by_manifest(directory, &[]);
        }
        for name in self.tree.names(directory)? {
            if !is_hidden(&name) {
                self.add(&join(directory, &name), depth)?;
            }
        }
        Ok(())
    }

    /// The files that the manifest of a directory names and the rest of a glob matches.
    fn by_manifest(&mut self, directory: &str, parts: &[Part]) -> Result<()> {
        let files = self.files;
        let Some(manifest) = self.manifest else {
            let shown = files.shown(directory);
            return Err(Error::not_yet(format!("reading {shown}, which a file sink of Levada writes")));
        };
        for Promised { path, size, crc32c } in (manifest.files)(&*files.store(directory))? {
            if !covers(parts, &path) {
                continue;
            }
            let path = join(directory, &path);
            let shown = files.shown(&path);
            let Some(Node::File(found)) = self.tree.look(&path)? else {
                return Err(Error::corrupt(shown, "the manifest names this file, and it is gone"));
            };
            self.found.insert(path, Promised::of(size, crc32c, found, &shown)?);
        }
        Ok(())
    }

    /// What the components of a glob match from a path on.
    fn descend(&mut self, path: &str, parts: &[Part], depth: usize) -> Result<()> {
        match parts {
            [] => self.add(path, depth),
            parts => self.inside(path, |walk| walk.expand(path, parts, depth)),
        }
    }

    fn expand(&mut self, directory: &str, parts: &[Part], depth: usize) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else { return self.add(directory, depth) };
        if self.has_manifest(directory)? {
            return self.by_manifest(directory, parts);
        }
        if let Part::Name(name) = part {
            return self.descend(&join(directory, name), rest, depth);
        }
        if !self.is_directory(directory)? {
            return Ok(());
        }
        if let Part::Deep = part {
            self.expand_rest(directory, rest, depth)?;
        }
        for name in self.tree.names(directory)? {
            let below = join(directory, &name);
            match part {
                Part::Pattern(pattern) if matches(pattern, &name) => self.descend(&below, rest, depth + 1)?,
                Part::Deep if !is_hidden(&name) && depth < MAX_DEPTH && self.is_directory(&below)? => {
                    self.descend(&below, parts, depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What `**` matches without a directory. At the end of a glob it matches only what is below.
    fn expand_rest(&mut self, directory: &str, rest: &[Part], depth: usize) -> Result<()> {
        match rest {
            [] => self.walk(directory, depth),
            rest => self.expand(directory, rest, depth),
        }
    }
}
