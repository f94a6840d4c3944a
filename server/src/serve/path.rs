//! The names in a request's path.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// The names in a path. Unlike that of axum, its rejection is a [`Problem`].
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(names)) => Ok(Self(names)),
            Err(_) => Err(Problem::bad_request("invalid path: expected UTF-8")),
        }
    }
}
