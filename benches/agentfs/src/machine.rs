//! The machine's own filesystem, through `std::fs`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{FILES, LARGE, SMALL, STEP, Subject, deep_path, offsets};

pub struct Machine(PathBuf);

impl Machine {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn file(&self, i: u32) -> PathBuf {
        self.0.join("d").join(format!("f{i}"))
    }
}

impl Subject for Machine {
    fn create(&mut self) {
        fs::create_dir(self.0.join("d")).unwrap();
        for i in 0..FILES {
            fs::write(self.file(i), [7; SMALL]).unwrap();
        }
        fs::create_dir_all(self.0.join(deep_path().trim_start_matches('/'))).unwrap();
    }

    fn stat(&mut self) {
        for i in 0..FILES {
            assert_eq!(fs::metadata(self.file(i)).unwrap().len(), SMALL as u64);
        }
    }

    fn read(&mut self) {
        for i in 0..FILES {
            assert_eq!(fs::read(self.file(i)).unwrap().len(), SMALL);
        }
    }

    fn overwrite(&mut self) {
        for i in 0..FILES {
            File::options().write(true).open(self.file(i)).unwrap().write_all(&[8; SMALL]).unwrap();
        }
    }

    fn list(&mut self) {
        let mut names: Vec<_> = fs::read_dir(self.0.join("d")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), FILES as usize);
    }

    fn deep_stat(&mut self) {
        let path = self.0.join(deep_path().trim_start_matches('/'));
        for _ in 0..1000 {
            fs::metadata(&path).unwrap();
        }
    }

    fn write_large(&mut self) {
        let mut file = File::create(self.0.join("large")).unwrap();
        let buffer = vec![9; STEP];
        for _ in 0..LARGE / STEP as u64 {
            file.write_all(&buffer).unwrap();
        }
    }

    fn read_large(&mut self) {
        let mut file = File::open(self.0.join("large")).unwrap();
        let mut buffer = vec![0; STEP];
        for _ in 0..LARGE / STEP as u64 {
            file.read_exact(&mut buffer).unwrap();
        }
    }

    fn read_anywhere(&mut self) {
        let file = File::open(self.0.join("large")).unwrap();
        let mut buffer = vec![0; 4096];
        for offset in offsets() {
            file.read_exact_at(&mut buffer, offset).unwrap();
        }
    }

    fn remove(&mut self) {
        fs::remove_dir_all(self.0.join("d")).unwrap();
    }
}
