//! Steps of the embedding program as history rows, such as the turns of an agent, so that a conversation can be resumed from the
//! file.

use serde_json::json;
use sqlite_fs::{NewCall, Outcome};

use super::Recorder;
use super::recorder::{now, text_of_row};
use crate::{Error, clock};

/// Maximum length of a step's name.
const NAME_BYTES: usize = 64;
/// Maximum size of a step's content, which is one row.
const CONTENT_BYTES: usize = 8 << 20;

/// Records a step, and returns its number.
pub(crate) fn record(recorder: &Recorder, name: &str, about: &str, content: &str) -> Result<i64, Error> {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(is_word) {
        return Err(Error::Invalid(format!(
            "invalid step name `{}`: expected 1–{NAME_BYTES} of a–z, 0–9 and _",
            text_of_row(name)
        )));
    }
    if content.len() > CONTENT_BYTES {
        return Err(Error::Invalid(format!("the step has {} bytes; the maximum is {CONTENT_BYTES}", content.len())));
    }
    let about = text_of_row(about);
    let transaction = recorder.database().begin(Some(clock::now() + super::TURN))?;
    recorder.write_waiting(&transaction)?;
    let parameters = json!({ "about": about }).to_string();
    let call = NewCall { name, parameters: Some(&parameters), command: &about, parent: None };
    let result = json!({ "success": true }).to_string();
    let outcome = Outcome { result: Some(&result), stdout: content.as_bytes(), ..Outcome::default() };
    let moment = now();
    let number = transaction.calls().record(&call, &outcome, moment, moment)?;
    transaction.commit()?;
    Ok(number)
}
