//! The forms of a `cpio` archive: `newc`, the same with checksums, and the older `odc`.

/// Which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `newc`.
    New,
    /// `newc` with checksums.
    Checked,
    /// `odc`.
    Old,
}

/// The name of the end marker.
const TRAILER: &[u8] = b"TRAILER!!!";

/// A member: a file with a name.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// Its name.
    pub name: Vec<u8>,
    /// Names with the same number are the same file.
    pub inode: u64,
    /// Type and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// How many names it had.
    pub links: u32,
    /// Seconds since 1970.
    pub time: u32,
    /// What is in it, or where a symbolic link leads.
    pub content: Vec<u8>,
}

impl Member {
    /// Adds it to an archive.
    pub fn write(&self, form: Form, archive: &mut Vec<u8>) {
        let (size, name_size) = (self.content.len(), self.name.len() + 1);
        if form == Form::Old {
            let fields = format!(
                "070707{:06o}{:06o}{:06o}{:06o}{:06o}{:06o}{:06o}{:011o}{name_size:06o}{size:011o}",
                0,
                self.inode & 0o777_777,
                self.mode & 0o777_777,
                self.uid & 0o777_777,
                self.gid & 0o777_777,
                self.links & 0o777_777,
                0,
                self.time,
            );
            archive.extend_from_slice(fields.as_bytes());
            archive.extend_from_slice(&self.name);
            archive.push(0);
            archive.extend_from_slice(&self.content);
            return;
        }
        let (magic, sum) = match form {
            Form::Checked => ("070702", self.content.iter().fold(0u32, |sum, &byte| sum.wrapping_add(u32::from(byte)))),
            _ => ("070701", 0),
        };
        archive.extend_from_slice(magic.as_bytes());
        let fields = [self.inode as u32, self.mode, self.uid, self.gid, self.links, self.time, size as u32, 0, 0, 0, 0];
        for field in fields.into_iter().chain([name_size as u32, sum]) {
            archive.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        archive.extend_from_slice(&self.name);
        archive.push(0);
        pad(archive);
        archive.extend_from_slice(&self.content);
        pad(archive);
    }
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

/// Ends an archive.
pub fn end(form: Form, archive: &mut Vec<u8>) {
    Member { name: TRAILER.to_vec(), links: 1, ..Member::default() }.write(form, archive);
}

/// Reads members one after the other.
pub struct Reader<'a> {
    archive: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns the members of `archive`.
    pub fn new(archive: &'a [u8]) -> Self {
        Self { archive, at: 0 }
    }

    /// Returns how much was read.
    pub fn position(&self) -> usize {
        self.at
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let end = self.at.checked_add(length).ok_or("premature end of file")?;
        let bytes = self.archive.get(self.at..end).ok_or("premature end of file")?;
        self.at = end;
        Ok(bytes)
    }

    fn number(&mut self, digits: usize, radix: u32) -> Result<u32, &'static str> {
        let text = std::str::from_utf8(self.take(digits)?).map_err(|_| "malformed header")?;
        u32::try_from(u64::from_str_radix(text, radix).map_err(|_| "malformed header")?).map_err(|_| "malformed header")
    }

    fn skip_padding(&mut self) {
        self.at = self.at.next_multiple_of(4).min(self.archive.len());
    }

    /// Returns the next member; `None` at the trailer.
    pub fn next_member(&mut self) -> Result<Option<Member>, &'static str> {
        let mut member = Member::default();
        let magic = self.take(6)?;
        let (size, name_size) = match magic {
            b"070701" | b"070702" => {
                let mut fields = [0; 13];
                for field in &mut fields {
                    *field = self.number(8, 16)?;
                }
                let [inode, mode, uid, gid, links, time, size, major, minor, _, _, name_size, _] = fields;
                let inode = u64::from(major) << 48 ^ u64::from(minor) << 32 ^ u64::from(inode);
                member = Member { inode, mode, uid, gid, links, time, ..member };
                (size, name_size)
            }
            b"070707" => {
                let device = self.number(6, 8)?;
                member.inode = u64::from(device) << 32 | u64::from(self.number(6, 8)?);
                member.mode = self.number(6, 8)?;
                member.uid = self.number(6, 8)?;
                member.gid = self.number(6, 8)?;
                member.links = self.number(6, 8)?;
                self.take(6)?;
                member.time = self.number(11, 8)?;
                let name_size = self.number(6, 8)?;
                (self.number(11, 8)?, name_size)
            }
            _ => return Err("malformed number or unknown archive format"),
        };
        let name = self.take(usize::try_from(name_size).unwrap_or(usize::MAX))?;
        member.name = name.split(|&byte| byte == 0).next().unwrap_or_default().to_vec();
        let padded = magic != b"070707";
        if padded {
            self.skip_padding();
        }
        member.content = self.take(usize::try_from(size).unwrap_or(usize::MAX))?.to_vec();
        if padded {
            self.skip_padding();
        }
        Ok((member.name != TRAILER).then_some(member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_go_there_and_back_in_every_form() {
        for form in [Form::New, Form::Checked, Form::Old] {
            let mut archive = Vec::new();
            let member =
                Member { name: b"a/b".into(), mode: 0o100_644, links: 1, time: 7, content: b"hello".into(), ..Member::default() };
            member.write(form, &mut archive);
            end(form, &mut archive);
            let mut reader = Reader::new(&archive);
            let back = reader.next_member().unwrap().unwrap();
            assert_eq!((back.name, back.mode, back.time, back.content), (member.name, 0o100_644, 7, member.content));
            assert!(reader.next_member().unwrap().is_none());
        }
        assert!(Reader::new(b"no archive").next_member().is_err());
    }
}
