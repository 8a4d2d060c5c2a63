//! How do the objects of a `gs://` source come into the sandbox?
//!
//! By the JSON API of Cloud Storage, under the environment's own rules: what its allowlist does not
//! permit is not fetched, and what its entries inject (a credential for a private bucket) is
//! injected. All names are listed and checked before the first object is fetched, so that a bucket
//! with a name that leads elsewhere brings nothing.

mod error;
mod listing;
mod object;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use outgate_proxy::{Content, Egress, Environment};
use tokio::time::{timeout, timeout_at};

pub(super) use self::error::GcsError;
use self::listing::Listing;
use self::object::{Object, encoded};
use super::beneath::Folder;

/// Where the API is; an allowlist entry must permit it.
const API: &str = "https://storage.googleapis.com/storage/v1/b";

/// From a request to the head of its answer, and from one piece of an object to the next: far more
/// than the service takes.
const SILENCE: Duration = Duration::from_secs(30);
/// A whole source: a sandbox waits for it before it starts.
const WHOLE: Duration = Duration::from_secs(900);
/// One answer to a listing: up to 1,000 names of up to 1,024 bytes, which JSON may escape sixfold.
const PAGE_BYTES: usize = 8 << 20;
/// Pages may be short, or empty, but not for ever.
const PAGES: usize = 100;
/// Objects of one source; each is a request.
const OBJECTS: u64 = 10_000;
/// Bytes of one source: they fill a disk of the gateway's own machine.
const BYTES: u64 = 4 << 30;
/// The longest name of an object.
const NAME_BYTES: usize = 1024;

/// Objects of one bucket: the one of this name, or those below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    name: String,
    /// Without a slash at its end.
    prefix: String,
}

/// Who asks, and for whose sandbox.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) egress: &'a Egress,
    pub(crate) environment: &'a Arc<Environment>,
}

impl Bucket {
    /// Those of `gs://name/prefix`.
    pub(super) fn new(name: &str, prefix: &str) -> Bucket {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        Bucket { name: name.to_owned(), prefix: prefix.to_owned() }
    }

    /// Fetches its objects into `target`, each in the place of whatever has its name there. An object that has the prefix for its whole name comes
    /// under its last part.
    pub(super) async fn fetch(&self, asker: Asker<'_>, target: &Folder) -> Result<(), GcsError> {
        let deadline = tokio::time::Instant::now() + WHOLE;
        let fetching = async {
            let mut left = BYTES;
            for object in self.list(asker).await? {
                left = self.fetch_one(asker, &object, (target, left)).await?;
            }
            Ok(())
        };
        let late = |_| Err(GcsError::Late(self.named(&self.prefix)));
        timeout_at(deadline, fetching).await.unwrap_or_else(late)
    }

    /// All objects, their names checked.
    async fn list(&self, asker: Asker<'_>) -> Result<Vec<Object>, GcsError> {
        let what = self.named(&self.prefix);
        if self.prefix.len() > NAME_BYTES {
            return Err(GcsError::Nothing(what));
        }
        let mut objects = Vec::new();
        let (mut count, mut bytes) = (0, 0u64);
        let mut token = String::new();
        for _ in 0..PAGES {
            let page = self.page(asker, &token).await?;
            for item in page.items {
                (count, bytes) = (count + 1, bytes.saturating_add(item.size));
                if count > OBJECTS || bytes > BYTES {
                    return Err(GcsError::TooMuch(what));
                }
                let object = Object::of(&item.name, &self.prefix)
                    .map_err(|error| GcsError::Name { what: self.named(&item.name), error })?;
                objects.extend(object);
            }
            match page.next_page_token {
                Some(next) => token = next,
                None if objects.is_empty() => return Err(GcsError::Nothing(what)),
                None => return Ok(objects),
            }
        }
        Err(GcsError::TooMuch(what))
    }

    async fn page(&self, asker: Asker<'_>, token: &str) -> Result<Listing, GcsError> {
        let what = || self.named(&self.prefix);
        let mut url = format!(
            "{API}/{}/o?fields=items(name,size),nextPageToken&prefix={}",
            self.name,
            encoded(&self.prefix)
        );
        if !token.is_empty() {
            url += &format!("&pageToken={}", encoded(token));
        }
        let content = self.get(asker, &url, &what).await?;
        let collected = timeout(SILENCE, content.collect(PAGE_BYTES)).await;
        let collected = collected.map_err(|_| GcsError::Silent(what()))?;
        let text = collected.map_err(|error| GcsError::Content { what: what(), error })?;
        Listing::read(&text).map_err(|error| GcsError::Listing { what: what(), error })
    }

    /// Fetches one object; `left` is how much may still come, and what is returned how much after it.
    async fn fetch_one(
        &self,
        asker: Asker<'_>,
        object: &Object,
        (target, mut left): (&Folder, u64),
    ) -> Result<u64, GcsError> {
        let what = || self.named(&object.name);
        let unwritten = |error| GcsError::Write { what: what(), error };
        if object.is_folder {
            return target.make(object.parts()).map(|_| left).map_err(unwritten);
        }
        let url = format!("{API}/{}/o/{}?alt=media", self.name, encoded(&object.name));
        let mut content = self.get(asker, &url, &what).await?;
        let (name, folders) = object.place();
        let folder = target.make(folders).map_err(unwritten)?;
        let mut file = folder.begin().map_err(unwritten)?;
        loop {
            let piece = timeout(SILENCE, content.piece()).await;
            let piece = piece.map_err(|_| GcsError::Silent(what()))?;
            let piece = piece.map_err(|error| GcsError::Content { what: what(), error })?;
            let Some(piece) = piece else {
                return file.place(name).map(|()| left).map_err(unwritten);
            };
            let rest = left.checked_sub(piece.len() as u64);
            left = rest.ok_or_else(|| GcsError::TooMuch(what()))?;
            // To the page cache, as fast as a copy; the sandbox has not started.
            file.write(&piece).map_err(unwritten)?;
        }
    }

    /// The content of a 200; anything else fails `what` was asked for.
    async fn get(
        &self,
        asker: Asker<'_>,
        url: &str,
        what: &impl Fn() -> String,
    ) -> Result<Content, GcsError> {
        let request = Request::get(url).body(Bytes::new());
        // Everything in it is encoded; only a page's token can be of any length.
        let request = request.map_err(|error| GcsError::Url { what: what(), error })?;
        let sent = timeout(SILENCE, asker.egress.send(asker.environment, request)).await;
        let sent = sent.map_err(|_| GcsError::Silent(what()))?;
        let response = sent.map_err(|denial| GcsError::Refused { what: what(), denial })?;
        match response.status() {
            StatusCode::OK => Ok(response.into_body()),
            status => Err(GcsError::Status { what: what(), status }),
        }
    }

    /// As a source names it.
    fn named(&self, object: &str) -> String {
        format!("gs://{}/{}", self.name, object.escape_debug())
    }
}

#[cfg(test)]
mod tests;
