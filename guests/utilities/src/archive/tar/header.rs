//! The 512-byte heads of a tar archive: ustar, GNU long names, pax records.

/// One member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub name: Vec<u8>,
    pub link: Vec<u8>,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub mtime: i64,
    /// `0` file, `1` hard link, `2` symbolic link, `5` directory.
    pub kind: u8,
    pub user: String,
    pub group: String,
}

fn octal(field: &[u8]) -> u64 {
    if field.first().is_some_and(|byte| byte & 0x80 != 0) {
        return field[1..].iter().fold(u64::from(field[0] & 0x7f), |value, &byte| value << 8 | u64::from(byte));
    }
    field.iter().filter(|byte| (b'0'..=b'7').contains(byte)).fold(0, |value, &byte| value << 3 | u64::from(byte - b'0'))
}

fn text(field: &[u8]) -> Vec<u8> {
    let end = memchr::memchr(0, field).unwrap_or(field.len());
    field[..end].to_vec()
}

/// Returns the member behind a head; `None` for an empty block, an error for one whose sum is wrong.
pub(super) fn decode(block: &[u8; 512]) -> Result<Option<Member>, ()> {
    if block.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let sum: u64 = block.iter().enumerate().map(|(at, &byte)| if (148..156).contains(&at) { 32 } else { u64::from(byte) }).sum();
    if octal(&block[148..156]) != sum {
        return Err(());
    }
    let mut name = text(&block[..100]);
    let prefix = text(&block[345..500]);
    if &block[257..263] == b"ustar\0" && !prefix.is_empty() {
        name = [prefix.as_slice(), b"/", &name].concat();
    }
    Ok(Some(Member {
        name,
        link: text(&block[157..257]),
        mode: octal(&block[100..108]) as u32,
        uid: octal(&block[108..116]) as u32,
        gid: octal(&block[116..124]) as u32,
        size: octal(&block[124..136]),
        mtime: octal(&block[136..148]) as i64,
        kind: if block[156] == 0 { b'0' } else { block[156] },
        user: String::from_utf8_lossy(&text(&block[265..297])).into_owned(),
        group: String::from_utf8_lossy(&text(&block[297..329])).into_owned(),
    }))
}

/// Applies pax records to the member that follows them.
pub(super) fn apply_pax(member: &mut Member, records: &[u8]) {
    let mut rest = records;
    while let Some(space) = memchr::memchr(b' ', rest) {
        let Some(length) =
            common::number::parse::<usize>(&rest[..space]).filter(|length| *length > space && *length <= rest.len())
        else {
            return;
        };
        let record = rest[space + 1..length].strip_suffix(b"\n").unwrap_or(&rest[space + 1..length]);
        if let Some(at) = memchr::memchr(b'=', record) {
            let value = &record[at + 1..];
            match &record[..at] {
                b"path" => member.name = value.to_vec(),
                b"linkpath" => member.link = value.to_vec(),
                b"size" => member.size = common::number::parse(value).unwrap_or(member.size),
                b"mtime" => {
                    let whole = value.split(|&byte| byte == b'.').next().unwrap_or(value);
                    member.mtime = common::number::parse(whole).unwrap_or(member.mtime);
                }
                b"uname" => member.user = String::from_utf8_lossy(value).into_owned(),
                b"gname" => member.group = String::from_utf8_lossy(value).into_owned(),
                _ => {}
            }
        }
        rest = &rest[length..];
    }
}

fn put_octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    if value >> (3 * digits) != 0 {
        field.fill(0);
        let bytes = value.to_be_bytes();
        let at = field.len() - 8;
        field[at..].copy_from_slice(&bytes);
        field[0] = 0x80;
        return;
    }
    let text = format!("{value:0digits$o}");
    field[..digits].copy_from_slice(text.as_bytes());
}

fn block(member: &Member) -> [u8; 512] {
    let mut block = [0; 512];
    let put = |block: &mut [u8; 512], at: usize, most: usize, bytes: &[u8]| {
        let length = bytes.len().min(most);
        block[at..at + length].copy_from_slice(&bytes[..length]);
    };
    put(&mut block, 0, 100, &member.name);
    put_octal(&mut block[100..108], u64::from(member.mode & 0o7777));
    put_octal(&mut block[108..116], u64::from(member.uid));
    put_octal(&mut block[116..124], u64::from(member.gid));
    put_octal(&mut block[124..136], member.size);
    put_octal(&mut block[136..148], member.mtime.max(0).cast_unsigned());
    block[156] = member.kind;
    put(&mut block, 157, 100, &member.link);
    block[257..265].copy_from_slice(b"ustar  \0");
    put(&mut block, 265, 31, member.user.as_bytes());
    put(&mut block, 297, 31, member.group.as_bytes());
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

/// Returns the head of a member, with GNU long-name blocks before it where names are long.
pub(super) fn encode(member: &Member) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, value) in [(b'K', &member.link), (b'L', &member.name)] {
        if value.len() > 100 {
            let mut long =
                Member { name: b"././@LongLink".to_vec(), kind, size: value.len() as u64 + 1, mode: 0o644, ..Member::default() };
            long.user = "root".to_string();
            long.group = "root".to_string();
            out.extend_from_slice(&block(&long));
            out.extend_from_slice(value);
            out.push(0);
            pad(&mut out);
        }
    }
    out.extend_from_slice(&block(member));
    out
}

/// Fills up to a whole block.
pub(super) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().div_ceil(512) * 512, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_survives_its_head() {
        let member = Member {
            name: b"a/b".to_vec(),
            mode: 0o644,
            uid: 5,
            gid: 6,
            size: 77,
            mtime: 1_700_000_000,
            kind: b'0',
            user: "u".into(),
            group: "g".into(),
            ..Member::default()
        };
        let head: [u8; 512] = encode(&member).try_into().unwrap();
        assert_eq!(decode(&head), Ok(Some(member)));
    }
}
