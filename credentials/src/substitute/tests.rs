use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::*;
use crate::secret::Fit;

fn stand(prefix: &str, value: &str) -> (String, Stand) {
    let tag = Tag::issue().expect("random bytes");
    let value = Secret::parse(value, Fit::Text).expect("a secret");
    (tag.placeholder(prefix), Stand { tag, prefix: prefix.to_owned(), value })
}

fn headers_of(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        })
        .collect()
}

fn basic(value: &str, stands: &[Stand]) -> String {
    let text = header(value.as_bytes(), stands).expect("fits");
    text.map_or_else(|| value.to_owned(), |text| String::from_utf8(text.to_vec()).expect("text"))
}

#[test]
fn values_take_the_place_of_placeholders_in_headers() {
    let (one, first) = stand("ghp_", "real-one");
    let (two, second) = stand("", "real-two");
    let mut map = headers_of(&[
        ("authorization", &format!("token {one}")),
        ("x-both", &format!("{one},{two}{one}")),
        ("x-other", "ogph but none"),
    ]);
    assert!(holds_placeholders(&map, &"/".parse().expect("a target")));
    let changed = headers(&mut map, &[first, second]).expect("fits");
    assert_eq!(changed.len(), 2);
    assert_eq!(map["authorization"], "token real-one");
    assert_eq!(map["x-both"], "real-one,real-tworeal-one");
    assert_eq!(map["x-other"], "ogph but none");
    assert!(map["authorization"].is_sensitive() && !map["x-other"].is_sensitive());
}

#[test]
fn what_was_put_in_is_not_looked_at_again() {
    let (two, second) = stand("", "secret-of-two");
    let (one, first) = stand("", &two);
    let mut map = headers_of(&[("x", &one)]);
    headers(&mut map, &[first, second]).expect("fits");
    assert_eq!(map["x"], two.as_str());
}

#[test]
fn a_placeholder_without_its_prefix_is_a_misfit() {
    let (whole, stand) = stand("ghp_", "real");
    let stands = [stand];
    for text in [whole[4..].to_owned(), format!("ghp{}", &whole[4..])] {
        assert_eq!(header(text.as_bytes(), &stands).err(), Some(Misfit::Prefix), "{text}");
    }
    assert_eq!(basic(&format!("{whole}{whole}"), &stands), "realreal");
}

#[test]
fn basic_is_opened_and_written_again_in_its_own_form() {
    let (placeholder, stand) = stand("", "s3cret?>~é");
    let stands = [stand];
    let inside = |text: &str| format!("x-access-token:{text}?>~");
    let (old, new) = (inside(&placeholder), inside("s3cret?>~é"));
    let engines = [STANDARD, URL_SAFE, STANDARD_NO_PAD, URL_SAFE_NO_PAD];
    for (engine, scheme) in engines.iter().zip(["Basic ", "basic ", "BASIC  ", "Basic "]) {
        let written = basic(&format!("{scheme}{}", engine.encode(&old)), &stands);
        let text = written.strip_prefix(scheme).expect("the scheme as it was");
        let read = [STANDARD, URL_SAFE, STANDARD_NO_PAD, URL_SAFE_NO_PAD]
            .iter()
            .find_map(|engine| engine.decode(text).ok());
        assert_eq!(read.as_deref(), Some(new.as_bytes()), "{scheme}{written}");
    }
    // Without a colon, and as the whole of it.
    let alone = format!("Basic {}", STANDARD.encode(&placeholder));
    assert_eq!(basic(&alone, &stands), format!("Basic {}", STANDARD.encode("s3cret?>~é")));
}

#[test]
fn what_is_no_base64_is_left_as_it_is() {
    let (_, stand) = stand("", "real");
    let stands = [stand];
    for text in ["Basic !!!", "Basic ", "Basic a", "Basic=eDp5", "Basic eDp5", "Bearer eDp5"] {
        assert_eq!(basic(text, &stands), text);
    }
}

#[test]
fn a_query_gets_the_value_escaped_and_the_rest_as_it_was() {
    let (placeholder, stand) = stand("", "a\"b&c=d/é");
    let target: PathAndQuery = format!("/p?x=%20&key={placeholder}&y").parse().expect("a target");
    let found = Found::look(&HeaderMap::new(), &target);
    assert_eq!((found.in_query.len(), found.in_path), (1, false));
    let changed = query(&target, &[stand]).expect("fits").expect("changed");
    assert_eq!(changed, "/p?x=%20&key=a%22b%26c%3Dd%2F%C3%A9&y");
}

#[test]
fn a_placeholder_in_the_path_is_seen() {
    let (placeholder, _) = stand("", "real");
    let target: PathAndQuery = format!("/bot{placeholder}/send").parse().expect("a target");
    assert!(holds_placeholders(&HeaderMap::new(), &target));
    assert!(Found::look(&HeaderMap::new(), &target).in_path);
}

#[test]
fn a_value_that_would_be_another_line_is_a_misfit() {
    let (placeholder, stand) = stand("", "é");
    let mut map = headers_of(&[("x", &placeholder)]);
    // obs-text is a valid field value: the fit of a header's secret is checked when it is stored.
    assert!(headers(&mut map, &[stand]).is_ok());
    assert!(Secret::parse("a\r\nb", Fit::Text).is_err());
}
