//! Which part of a list is asked for?

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use serde::Deserialize;

use super::answer::Refusal;

/// Where nothing is said, and at most.
const USUAL: usize = 50;
const MOST: usize = 1000;

/// `page_size` and `page_token`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    page_size: Option<i64>,
    page_token: Option<String>,
}

/// A query as it was meant, or what is wrong with it.
pub(super) fn asked<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Refusal> {
    match query {
        Ok(Query(query)) => Ok(query),
        Err(error) => Err(Refusal::invalid(error.body_text())),
    }
}

/// From behind which id on, and how many.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub(super) after: Option<String>,
    pub(super) size: usize,
}

impl PageQuery {
    /// A page of the size that is asked for, within bounds; 0 is as if nothing was said.
    pub(super) fn page(self) -> Result<Page, Refusal> {
        let size = match self.page_size.unwrap_or(0) {
            0 => USUAL,
            size => usize::try_from(size)
                .map_err(|_| Refusal::invalid("page_size: not negative"))?
                .min(MOST),
        };
        Ok(Page { after: self.page_token.filter(|token| !token.is_empty()), size })
    }
}

impl Page {
    /// The items of this page out of one more than fit on it, and what asks for the next.
    pub(super) fn cut<T>(
        &self,
        mut items: Vec<T>,
        id: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let more = items.len() > self.size;
        items.truncate(self.size);
        let next = items.last().filter(|_| more).map(id);
        (items, next)
    }
}
