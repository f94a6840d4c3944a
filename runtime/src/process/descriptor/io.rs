//! Reading, writing, seeking and waiting on an open file of any kind.

use std::sync::{Arc, PoisonError};

use abi::{Disposition, Errno, Signal};

use super::{Generated, Object, OpenFile};
use crate::clock::Moment;
use crate::process::wait::{Interruption, block};
use crate::process::{Ended, Fault, Job, Process};
use crate::vfs::Device;
use sqlite_fs::{Volume, VolumeMut};

/// Where a seek starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whence {
    /// The start of the file.
    Start,
    /// The current position.
    Current,
    /// The end of the file.
    End,
}

impl OpenFile {
    /// Reads at the position and moves it; blocks while a pipe is empty.
    pub(crate) fn read(&self, job: &Job, process: &Process, buffer: &mut [u8]) -> Result<usize, Fault> {
        if !self.readable {
            return Err(Errno::BADF.into());
        }
        match &self.object {
            Object::Reader(pipe) | Object::Both(pipe, _) => {
                if let Some(length) = pipe.try_read(buffer) {
                    return Ok(length);
                }
                if self.nonblocking() {
                    return Err(Errno::AGAIN.into());
                }
                let length = block(job, process, None, || {
                    pipe.register();
                    pipe.try_read(buffer)
                })?;
                Ok(length.unwrap_or(0))
            }
            Object::Device(device) => self.read_device(*device, job, buffer),
            Object::Directory(_) => Err(Errno::ISDIR.into()),
            Object::Writer(_) | Object::Capture(_) => Err(Errno::BADF.into()),
            Object::File(_) | Object::Bytes(_) | Object::Generated(..) => {
                let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
                let length = self.read_at(job, *position, buffer)?;
                *position += length as u64;
                Ok(length)
            }
        }
    }

    /// Reads at an offset.
    pub(crate) fn read_at(&self, job: &Job, offset: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        if !self.readable {
            return Err(Errno::BADF.into());
        }
        match &self.object {
            Object::File(held) => {
                let length = job.view.read(held.node, offset, buffer)?;
                job.meter.count_read(length);
                Ok(length)
            }
            Object::Bytes(bytes) | Object::Generated(_, Generated { bytes, .. }) => {
                let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
                let length = rest.len().min(buffer.len());
                buffer[..length].copy_from_slice(&rest[..length]);
                Ok(length)
            }
            Object::Device(device) => self.read_device(*device, job, buffer),
            Object::Directory(_) => Err(Errno::ISDIR.into()),
            _ => Err(Errno::SPIPE.into()),
        }
    }

    fn read_device(&self, device: Device, job: &Job, buffer: &mut [u8]) -> Result<usize, Fault> {
        match device {
            Device::Null => Ok(0),
            Device::Zero | Device::Full => {
                buffer.fill(0);
                Ok(buffer.len())
            }
            Device::Random => {
                job.random.fill(buffer).map_err(|_| Errno::IO)?;
                Ok(buffer.len())
            }
        }
    }

    /// Writes at the position, or at the end, and moves it; blocks while a pipe is full.
    pub(crate) fn write(&self, job: &Job, process: &Process, bytes: &[u8]) -> Result<usize, Fault> {
        if !self.writable {
            return Err(Errno::BADF.into());
        }
        match &self.object {
            Object::Writer(pipe) | Object::Both(_, pipe) => {
                let first = pipe.try_write(bytes);
                let written = match first {
                    Some(written) => written,
                    None if self.nonblocking() => return Err(Errno::AGAIN.into()),
                    None => block(job, process, None, || {
                        pipe.register();
                        pipe.try_write(bytes)
                    })?
                    .unwrap_or(Ok(0)),
                };
                written.or_else(|_| broken_pipe(process))
            }
            Object::Capture(capture) => {
                let (keep, reached) = job.meter.take_output(bytes.len() as u64);
                // Kept until the command ends, so never released.
                if !job.meter.take_output_memory(keep) {
                    return Err(Errno::NOMEM.into());
                }
                capture.push(bytes, usize::try_from(keep).unwrap_or(usize::MAX));
                if capture.is_behind() && !self.nonblocking() {
                    match block(job, process, None, || (!capture.is_behind()).then_some(())) {
                        // The bytes are written: the signal is handled at the next call.
                        Ok(_) | Err(Interruption::Signal) => {}
                        Err(ended) => return Err(ended.into()),
                    }
                }
                match reached {
                    None => Ok(bytes.len()),
                    Some(reached) => Err(reached.into()),
                }
            }
            Object::Device(Device::Full) => Err(Errno::NOSPC.into()),
            Object::Device(_) => Ok(bytes.len()),
            Object::File(held) => {
                let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
                let (start, length) = match self.append() {
                    true => job.view.append(held.node, bytes)?,
                    false => (*position, job.view.write(held.node, *position, bytes)?),
                };
                job.meter.count_written(length);
                *position = start + length as u64;
                Ok(length)
            }
            Object::Directory(_) | Object::Bytes(_) | Object::Generated(..) | Object::Reader(_) => Err(Errno::BADF.into()),
        }
    }

    /// Writes at an offset.
    pub(crate) fn write_at(&self, job: &Job, offset: u64, bytes: &[u8]) -> Result<usize, Fault> {
        if !self.writable {
            return Err(Errno::BADF.into());
        }
        match &self.object {
            Object::File(held) => {
                let length = job.view.write(held.node, offset, bytes)?;
                job.meter.count_written(length);
                Ok(length)
            }
            Object::Device(Device::Full) => Err(Errno::NOSPC.into()),
            Object::Device(_) => Ok(bytes.len()),
            _ => Err(Errno::SPIPE.into()),
        }
    }

    /// Moves the position and returns the new one.
    pub(crate) fn seek(&self, job: &Job, offset: i64, whence: Whence) -> Result<u64, Fault> {
        let size = match &self.object {
            Object::File(held) => {
                if whence == Whence::End {
                    job.view.stat(held.node)?.size
                } else {
                    0
                }
            }
            Object::Bytes(bytes) | Object::Generated(_, Generated { bytes, .. }) => bytes.len() as u64,
            Object::Device(_) => 0,
            Object::Directory(_) => return Err(Errno::ISDIR.into()),
            _ => return Err(Errno::SPIPE.into()),
        };
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let base = match whence {
            Whence::Start => 0,
            Whence::Current => *position,
            Whence::End => size,
        };
        let target = base.checked_add_signed(offset).filter(|&target| i64::try_from(target).is_ok()).ok_or(Errno::INVAL)?;
        *position = target;
        Ok(target)
    }

    /// Returns the number of bytes that can be read or written without blocking; `None` if the call would block.
    pub(crate) fn ready(&self, for_writing: bool) -> Option<u64> {
        let room = match &self.object {
            Object::Reader(pipe) | Object::Both(pipe, _) if !for_writing => pipe.available()?,
            Object::Writer(pipe) | Object::Both(_, pipe) if for_writing => pipe.available()?,
            _ => super::super::pipe::CAPACITY,
        };
        Some(room as u64)
    }

    /// Registers the calling thread for the next change of a pipe.
    pub(crate) fn register(&self) {
        match &self.object {
            Object::Reader(pipe) => pipe.register(),
            Object::Writer(pipe) => pipe.register(),
            Object::Both(reader, writer) => {
                reader.register();
                writer.register();
            }
            _ => {}
        }
    }
}

// A writer without a reader dies silently, unless it disabled that.
fn broken_pipe(process: &Process) -> Result<usize, Fault> {
    match process.disposition(Signal::PIPE) {
        Disposition::Default => Err(Ended::Signal(Signal::PIPE).into()),
        disposition => {
            if disposition == Disposition::Catch {
                process.deliver(Signal::PIPE);
            }
            Err(Errno::PIPE.into())
        }
    }
}

/// Blocks until one of some open files is ready, or until a deadline; returns whether one was.
pub(crate) fn wait_ready(
    job: &Job,
    process: &Process,
    files: &[(Arc<OpenFile>, bool)],
    until: Option<Moment>,
) -> Result<bool, Interruption> {
    let ready = block(job, process, until, || {
        files.iter().for_each(|(file, _)| file.register());
        files.iter().any(|(file, for_writing)| file.ready(*for_writing).is_some()).then_some(())
    })?;
    Ok(ready.is_some())
}
