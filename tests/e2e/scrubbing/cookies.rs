//! Does a session that an injected credential opened reach the client?

use outgate_tests::prelude::*;

use crate::{GET, NAME, tunnel};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nSet-Cookie: sid=1; Domain=.example.com\r\n\
                      Set-Cookie: other=2\r\nSet-Cookie2: old=3\r\nX-Kept: 1\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn no_cookie_passes_where_an_entry_drops_them() {
    isolated(|| {
        let world = world!();
        let _origin = world.https(NAME).respond(ANSWER).start();
        let open = json!({"domain": NAME});
        let dropping = json!({"domain": NAME, "drop_set_cookie": true});
        // A wider entry that matches wholly has its say too; one of another path has none.
        let wider = json!({"domain": "*.example.com", "drop_set_cookie": true});
        let elsewhere = json!({"domain": NAME, "paths": ["/other"], "drop_set_cookie": true});
        for (entries, passes) in [
            (json!([open]), true),
            (json!([dropping]), false),
            (json!([open, wider]), false),
            (json!([open, elsewhere]), true),
        ] {
            let gateway = world.gateway(json!({"network": {"allowlist": entries}}));
            let said = tunnel(&gateway).exchange(GET);
            let http2 = gateway.http2(NAME).connect().get("/");
            assert_eq!((said.text().as_str(), said.header("x-kept")), ("ok", Some("1")));
            let cookies = if passes { 2 } else { 0 };
            assert_eq!(said.head.values("set-cookie").len(), cookies, "{entries}");
            assert_eq!(said.header("set-cookie2").is_some(), passes, "{entries}");
            assert_eq!(http2.headers.get_all("set-cookie").iter().count(), cookies, "{entries}");
        }
    });
}
