//! The files of a sandbox in pages: only one directory per level is in memory, whatever the size of the tree.

use std::cmp::Ordering;

use sqlite_fs::{FileType, FsError, Reader, Step, Volume as _};

use super::{Files, about};
use crate::Error;
use crate::vfs::{Unread, View};

/// Maximum number of files on a page, and maximum size of their paths.
const PAGE_FILES: usize = 200;
const PAGE_BYTES: usize = 64 << 10;
/// Maximum length of a path, as in the tree itself.
const MAX_PATH: usize = 4096;

/// A page of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePage {
    /// Absolute paths and sizes of regular files, directory by directory, sorted by name.
    pub files: Vec<(String, u64)>,
    /// Whether there are more after them.
    pub more: bool,
    /// Notes about directories and files of mounts that cannot be read.
    pub notes: Vec<String>,
}

impl Files<'_> {
    /// Returns the regular files after a path, in walk order: at most 200, and at most 64 KB of paths. The last one is the
    /// `after` of the next page.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn page(&self, after: Option<&str>) -> Result<FilePage, Error> {
        self.sandbox.recorder.read(self.recorded(about("walk_files", "/")), || {
            let view = self.sandbox.now()?;
            view.at_one_state(|view| page(view, after).map_err(|error| view.explain(error)))
        })
    }
}

fn page(view: &View<Reader>, after: Option<&str>) -> Result<FilePage, Error> {
    let after: Option<Vec<&str>> = after.map(|after| after.split('/').collect());
    let (mut page, mut room) = (FilePage::default(), PAGE_BYTES);
    let unread = Unread::default();
    let skip = |path: &str, error: FsError| unread.add(path, error);
    view.fs().skipping(&skip).visit::<Error>("/", |visited| {
        let place = after.as_ref().map_or(Place::After, |after| place(visited.path, after));
        match visited.kind {
            _ if visited.is_left_out => return Ok(Step::Skip),
            FileType::Directory if place == Place::Before || visited.path.len() >= MAX_PATH => return Ok(Step::Skip),
            FileType::File if place == Place::After => {
                let left = room.checked_sub(visited.path.len());
                if page.files.len() == PAGE_FILES || (left.is_none() && !page.files.is_empty()) {
                    page.more = true;
                    return Ok(Step::Stop);
                }
                room = left.unwrap_or(0);
                match view.stat(visited.node) {
                    Ok(stat) => page.files.push((visited.path.to_owned(), stat.size)),
                    Err(error) if error != FsError::Interrupted && view.is_foreign(visited.node) => skip(visited.path, error),
                    Err(error) => return Err(Error::file("walk", visited.path, error)),
                }
            }
            _ => {}
        }
        Ok(Step::Enter)
    })?;
    page.notes = unread.notes(view);
    Ok(page)
}

/// The position of a path relative to the start of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// With everything below it.
    Before,
    /// It is a parent directory of that path.
    Above,
    After,
}

fn place(path: &str, after: &[&str]) -> Place {
    if path.split('/').zip(after).all(|(name, other)| name == *other) && path.split('/').count() < after.len() {
        return Place::Above;
    }
    match path.split('/').cmp(after.iter().copied()) {
        Ordering::Greater => Place::After,
        _ => Place::Before,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Host, Sandbox};

    // T-DOS-03.
    #[test]
    fn pages_contain_every_file_once() {
        let sandbox = Sandbox::builder().host(&Host::builder().build().unwrap()).open().unwrap();
        let mut expected: Vec<String> = (0..450).map(|number| format!("/many/f{number:03}")).collect();
        expected.extend(["/a/b", "/a.b", "/a/c/d", "/ab", "/z"].map(str::to_owned));
        for path in &expected {
            sandbox
                .fs()
                .create_dir_all(path.rsplit_once('/').map(|(parent, _)| parent).filter(|p| !p.is_empty()).unwrap_or("/"))
                .unwrap();
            sandbox.fs().write(path, "x").unwrap();
        }
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = sandbox.fs().page(after.as_deref()).unwrap();
            assert!(page.files.len() <= super::PAGE_FILES);
            found.extend(page.files.iter().map(|(path, _)| path.clone()));
            after = found.last().cloned();
            if !page.more {
                break;
            }
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_page_is_one_state_of_files_that_come_and_go() {
        let sandbox = Sandbox::builder().host(&Host::builder().build().unwrap()).open().unwrap();
        let other = sandbox.clone();
        let writer = std::thread::spawn(move || {
            for _ in 0..20 {
                let files = (0..150).map(|number| (format!("/many/{number}"), b"x".to_vec().into())).collect();
                other.fs().write_all(files).unwrap();
                other.fs().remove_dir_all("/many").unwrap();
            }
        });
        while !writer.is_finished() {
            let page = sandbox.fs().page(None).unwrap();
            assert!([0, 150].contains(&page.files.len()), "{}", page.files.len());
        }
        writer.join().unwrap();
    }
}
