//! The file tools of an agent as actions: their requests, results and texts are in `agent/`.

use super::{Answer, Context, Request};
use crate::Error;
use crate::agent::{
    DeleteFile, Deleted, EditFile, Edited, Found, Glob, Grep, Grepped, ListFiles, Listed, MoveFile, Moved, ReadFile, ReadWindow,
    WriteFile, Written,
};

macro_rules! file_tools {
    ($($request:ty, $method:ident, $data:ty;)*) => {
        $(impl Request for $request {
            type Data = $data;

            fn run(self, context: &Context) -> Result<Answer, Error> {
                let done = context.sandbox().agent().cancelled_by(context.cancel()).$method(&self)?;
                Ok(Answer::new(done.render(), &done))
            }
        })*
    };
}

file_tools! {
    ReadFile, read, ReadWindow;
    WriteFile, write, Written;
    EditFile, edit, Edited;
    ListFiles, list, Listed;
    Glob, glob, Found;
    Grep, grep, Grepped;
    DeleteFile, delete, Deleted;
    MoveFile, rename, Moved;
}
