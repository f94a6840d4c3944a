//! `uuidgen`: random identifiers, and ones made from a name.

use sha1::{Digest, Sha1};

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, extra_operand, fail};
use crate::text::shuf::Random;

const SPEC: Spec = Spec {
    short: "rtn:N:msxC:",
    long: &[
        ("random", No, 'r'),
        ("time", No, 't'),
        ("namespace", Needs, 'n'),
        ("name", Needs, 'N'),
        ("md5", No, 'm'),
        ("sha1", No, 's'),
        ("hex", No, 'x'),
        ("count", Needs, 'C'),
    ],
    help: "[options]",
};

/// Namespaces with names of their own.
const NAMESPACES: [(&str, u128); 4] = [
    ("@dns", 0x6ba7_b810_9dad_11d1_80b4_00c0_4fd4_30c8),
    ("@url", 0x6ba7_b811_9dad_11d1_80b4_00c0_4fd4_30c8),
    ("@oid", 0x6ba7_b812_9dad_11d1_80b4_00c0_4fd4_30c8),
    ("@x500", 0x6ba7_b814_9dad_11d1_80b4_00c0_4fd4_30c8),
];

/// Tenths of a microsecond from the calendar of 1582 to 1970.
const SINCE_1582: i128 = 0x01b2_1dd2_1381_4000;

/// Runs `uuidgen`.
pub fn uuidgen(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    if let Some(operand) = given.operands.first() {
        return Err(extra_operand(operand));
    }
    let count = match given.value('C').map(|text| text.to_string_lossy().parse::<u32>()) {
        None => 1,
        Some(Ok(count)) => count,
        Some(Err(_)) => return Err(fail("failed to parse count argument")),
    };
    let mut random = Random::from_system(1);
    let mut out = Output::new();
    for _ in 0..count {
        let id = if given.has('m') || given.has('s') {
            from_name(&given)?
        } else if given.has('t') {
            from_time(&mut random)
        } else {
            with_version(u128::from(random.next()) << 64 | u128::from(random.next()), 4)
        };
        out.text(format!("{}\n", shown(id)));
    }
    Ok(0)
}

fn from_name(given: &options::Given) -> Result<u128, i32> {
    let (Some(namespace), Some(name)) = (given.value('n'), given.value('N')) else {
        return Err(fail("--md5 and --sha1 require --namespace and --name"));
    };
    let namespace = namespace.to_string_lossy();
    let known = NAMESPACES.iter().find(|(known, _)| *known == namespace).map(|(_, id)| *id);
    let Some(space) = known.or_else(|| u128::from_str_radix(&namespace.replace('-', ""), 16).ok()) else {
        return Err(fail(format!("unknown namespace alias: '{namespace}'")));
    };
    let text = bytes(name);
    let named = if given.has('x') { hex(text).ok_or_else(|| fail("not a valid hex string"))? } else { text.to_vec() };
    let (digest, version) = if given.has('m') {
        (md5::Md5::new().chain_update(space.to_be_bytes()).chain_update(named).finalize().to_vec(), 3)
    } else {
        (Sha1::new().chain_update(space.to_be_bytes()).chain_update(named).finalize().to_vec(), 5)
    };
    let first: [u8; 16] = digest.get(..16).and_then(|first| first.try_into().ok()).unwrap_or_default();
    Ok(with_version(u128::from_be_bytes(first), version))
}

fn hex(text: &[u8]) -> Option<Vec<u8>> {
    text.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

// A random node with the bit that marks it as not an address.
fn from_time(random: &mut Random) -> u128 {
    let ticks = (sys::now_ns() / 100 + SINCE_1582) as u128;
    let (low, middle, high) = (ticks & 0xffff_ffff, ticks >> 32 & 0xffff, ticks >> 48 & 0xfff);
    let rest = u128::from(random.next()) | 1 << 40;
    with_version(low << 96 | middle << 80 | high << 64 | rest, 1)
}

fn with_version(id: u128, version: u128) -> u128 {
    let id = id & !(0xf << 76) | version << 76;
    id & !(0b11 << 62) | 0b10 << 62
}

fn shown(id: u128) -> String {
    let text = format!("{id:032x}");
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    for length in [8, 4, 4, 4, 12] {
        let (part, more) = rest.split_at(length);
        parts.push(part);
        rest = more;
    }
    parts.join("-")
}
