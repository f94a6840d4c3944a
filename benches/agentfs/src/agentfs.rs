//! AgentFS's Rust SDK, through its own fastest calls.

use std::path::Path;

use agentfs_sdk::{AgentFS, AgentFSOptions, FileSystem};
use tokio::runtime::Runtime;

use crate::{FILES, LARGE, SMALL, STEP, Subject, deep_path, offsets};

pub struct AgentFs {
    runtime: Runtime,
    agent: AgentFS,
}

impl AgentFs {
    pub fn new(path: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = AgentFSOptions::with_path(path.to_str().unwrap());
        let agent = runtime.block_on(AgentFS::open(options)).unwrap();
        Self { runtime, agent }
    }
}

impl Subject for AgentFs {
    fn create(&mut self) {
        let fs = &self.agent.fs;
        self.runtime.block_on(async {
            fs.mkdir("/d", 0, 0).await.unwrap();
            for i in 0..FILES {
                let (_, file) = fs.create_file(&format!("/d/f{i}"), 0o100_644, 0, 0).await.unwrap();
                file.pwrite(0, &[7; SMALL]).await.unwrap();
            }
            let deep = deep_path();
            for end in (2..=deep.len()).step_by(2) {
                fs.mkdir(&deep[..end], 0, 0).await.unwrap();
            }
        });
    }

    fn stat(&mut self) {
        self.runtime.block_on(async {
            for i in 0..FILES {
                let stats = self.agent.fs.stat(&format!("/d/f{i}")).await.unwrap().unwrap();
                assert_eq!(stats.size, SMALL as i64);
            }
        });
    }

    fn read(&mut self) {
        self.runtime.block_on(async {
            for i in 0..FILES {
                assert_eq!(self.agent.fs.read_file(&format!("/d/f{i}")).await.unwrap().unwrap().len(), SMALL);
            }
        });
    }

    fn overwrite(&mut self) {
        self.runtime.block_on(async {
            for i in 0..FILES {
                self.agent.fs.pwrite(&format!("/d/f{i}"), 0, &[8; SMALL]).await.unwrap();
            }
        });
    }

    fn list(&mut self) {
        self.runtime.block_on(async {
            let dir = self.agent.fs.stat("/d").await.unwrap().unwrap().ino;
            assert_eq!(FileSystem::readdir_plus(&self.agent.fs, dir).await.unwrap().unwrap().len(), FILES as usize);
        });
    }

    fn deep_stat(&mut self) {
        self.runtime.block_on(async {
            let path = deep_path();
            for _ in 0..1000 {
                self.agent.fs.stat(&path).await.unwrap().unwrap();
            }
        });
    }

    fn write_large(&mut self) {
        self.runtime.block_on(async {
            let (_, file) = self.agent.fs.create_file("/large", 0o100_644, 0, 0).await.unwrap();
            let buffer = vec![9; STEP];
            for step in 0..LARGE / STEP as u64 {
                file.pwrite(step * STEP as u64, &buffer).await.unwrap();
            }
        });
    }

    fn read_large(&mut self) {
        self.runtime.block_on(async {
            let file = self.agent.fs.open("/large").await.unwrap();
            for step in 0..LARGE / STEP as u64 {
                assert_eq!(file.pread(step * STEP as u64, STEP as u64).await.unwrap().len(), STEP);
            }
        });
    }

    fn read_anywhere(&mut self) {
        self.runtime.block_on(async {
            let file = self.agent.fs.open("/large").await.unwrap();
            for offset in offsets() {
                assert_eq!(file.pread(offset, 4096).await.unwrap().len(), 4096);
            }
        });
    }

    fn remove(&mut self) {
        self.runtime.block_on(async {
            for i in 0..FILES {
                self.agent.fs.remove(&format!("/d/f{i}")).await.unwrap();
            }
            self.agent.fs.remove("/d").await.unwrap();
        });
    }
}
