//! The fixed world of a sandbox that asked for the scientific Python: `python3` is that one, and its library lies where it
//! looks for it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::{Fixed, FixedId, Thing};

/// A stretch of an installed file of the host: read in place. The file is open; no path is kept.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    file: Arc<File>,
    start: u64,
    length: u64,
}

impl Part {
    /// Creates a range of this many bytes from an offset.
    pub(crate) fn new(file: &Arc<File>, start: u64, length: u64) -> Self {
        Self { file: Arc::clone(file), start, length }
    }

    /// Returns how many bytes there are.
    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Reads at an offset; a file that fails reads as one that ends.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = left.min(buffer.len());
        let Some(wanted) = buffer.get_mut(..length) else { return 0 };
        self.file.read_at(wanted, self.start.saturating_add(offset)).unwrap_or(0)
    }
}

impl Fixed {
    /// A world with the scientific Python, whose files are these: paths below `/usr`, and what is there.
    /// It stays for as long as the program runs.
    pub(crate) fn scientific(files: Vec<(String, Part)>) -> &'static Self {
        let mut world = Self::build();
        if let Some(bin) = world.at(&["usr", "bin"]) {
            world.forget(bin, |name| name.starts_with("python"));
            for program in guests::scientific::PROGRAMS {
                world.add(bin, program, Thing::Program(&guests::PYTHON_SCI, program));
            }
        }
        if let Some(library) = world.at(&["usr", "local", "lib"]) {
            world.forget(library, |_| true);
        }
        if let Some(usr) = world.at(&["usr"]) {
            for (path, part) in files {
                world.add_file(usr, &path, Thing::Installed(part));
            }
        }
        if let Some(lib) = world.at(&["usr", "lib"]) {
            let glue = world.directory(lib, "sandlite");
            for (name, text) in guests::scientific::GLUE {
                world.add(glue, name, Thing::Text(text));
            }
        }
        Box::leak(Box::new(world))
    }

    fn at(&self, path: &[&str]) -> Option<FixedId> {
        path.iter().try_fold(Self::ROOT, |directory, name| match self.thing(directory) {
            Thing::Directory(names) => names.get(name).copied(),
            _ => None,
        })
    }

    fn forget(&mut self, directory: FixedId, which: impl Fn(&str) -> bool) {
        if let Some((Thing::Directory(names), _)) = self.nodes.get_mut(directory.0 as usize) {
            names.retain(|name, _| !which(name));
        }
    }

    // A file with the directories above it.
    fn add_file(&mut self, directory: FixedId, path: &str, thing: Thing) {
        match path.split_once('/') {
            None => {
                self.add(directory, path.to_owned().leak(), thing);
            }
            Some((first, rest)) => {
                let known = match self.thing(directory) {
                    Thing::Directory(names) => names.get(first).copied(),
                    _ => None,
                };
                let below = known.unwrap_or_else(|| self.directory(directory, first.to_owned().leak()));
                self.add_file(below, rest, thing);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::vfs::Node;

    #[test]
    fn python_is_the_scientific_one_and_its_files_are_parts_of_one() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"librarydata").unwrap();
        let file = Arc::new(file);
        let parts = vec![
            ("local/lib/python315.zip".to_owned(), Part::new(&file, 0, 7)),
            ("local/lib/python3.15/matplotlib/mpl-data/style".to_owned(), Part::new(&file, 7, 4)),
        ];
        let world = Fixed::scientific(parts);
        let names = |path: &[&str]| match world.thing(world.at(path).unwrap()) {
            Thing::Directory(names) => names.keys().copied().collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let python: Vec<_> = names(&["usr", "bin"]).into_iter().filter(|name| name.starts_with("python")).collect();
        assert_eq!(python, ["python", "python3", "python3.15"]);
        assert_eq!(names(&["usr", "local", "lib"]), ["python3.15", "python315.zip"]);
        let style = world.at(&["usr", "local", "lib", "python3.15", "matplotlib", "mpl-data", "style"]).unwrap();
        let mut buffer = [0; 16];
        assert_eq!((world.read(style, 1, &mut buffer), &buffer[..3]), (Ok(3), &b"ata"[..]));
        assert_eq!(world.read(style, 9, &mut buffer), Ok(0));
        let Some((Node::Fixed(cat), _)) = world.lookup(world.at(&["usr", "bin"]).unwrap(), "cat") else { panic!() };
        assert!(matches!(world.thing(cat), Thing::Program(guest, "cat") if guest.name == "shell"));
    }
}
