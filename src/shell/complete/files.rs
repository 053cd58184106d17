//! The names in a folder: all of the outside world that completion looks at.

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) struct Entry {
    pub(super) name: String,
    pub(super) is_folder: bool,
}

/// Where names of files come from.
pub(in crate::shell) trait Files {
    /// The names in a folder, sorted; `""` is the working directory. None where it can't be read.
    fn list(&self, folder: &str) -> Vec<Entry>;
}

/// The file system.
pub(in crate::shell) struct Disk;

/// More than this nobody reads.
const MOST_FILES: usize = 10_000;

impl Files for Disk {
    fn list(&self, folder: &str) -> Vec<Entry> {
        let Ok(entries) = std::fs::read_dir(if folder.is_empty() { "." } else { folder }) else { return Vec::new() };
        let entry = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok().filter(|name| !name.contains(char::is_control))?;
            Some(Entry { name, is_folder: entry.path().is_dir() })
        };
        let mut entries: Vec<Entry> = entries.take(MOST_FILES).filter_map(entry).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }
}
