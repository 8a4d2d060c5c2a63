//! Does another name, or another address, get through where one is allowed?

use std::net::{IpAddr, SocketAddr};
use std::thread;

use super::counters::watched;
use super::streams::{FOREIGN_V4, FOREIGN_V6};
use super::tls::{Answer, get};
use crate::verify::brief::Brief;
use crate::verify::finding::Finding;

/// Resolvers that programs know by heart.
const RESOLVERS: [&str; 5] =
    ["dns.google", "cloudflare-dns.com", "one.one.one.one", "dns.quad9.net", "doh.opendns.com"];

/// Allowed nowhere; for an environment that allows nothing at all it takes the place of what is.
const STRANGER: &str = "stranger.example";

const HTTPS: u16 = 443;
const DNS_OVER_TLS: u16 = 853;

pub(super) fn doh(_: &Brief, finding: &mut Finding) {
    // The question is for the address of `example.com` (RFC 8484 §4.1.1).
    let path = "/dns-query?dns=AAABAAABAAAAAAAAB2V4YW1wbGUDY29tAAABAAE";
    ask_all(&RESOLVERS.map(|name| Question { port: HTTPS, sni: name, host: name, path }), finding);
}

pub(super) fn dot(_: &Brief, finding: &mut Finding) {
    let port = DNS_OVER_TLS;
    ask_all(&RESOLVERS.map(|name| Question { port, sni: name, host: name, path: "/" }), finding);
}

/// TLS for a name that is allowed, with a request for another inside, and the other way round.
pub(super) fn fronting(brief: &Brief, finding: &mut Finding) {
    let pairs = [(allowed(brief), STRANGER), (STRANGER, allowed(brief))];
    ask_all(&pairs.map(|(sni, host)| Question { port: HTTPS, sni, host, path: "/" }), finding);
}

/// A name that is allowed, at an address that isn't its own: what is dialled is settled by the name
/// alone, and in here names have no address.
pub(super) fn foreign_address(brief: &Brief, finding: &mut Finding) {
    let name = allowed(brief);
    ask_all(&[Question { port: HTTPS, sni: name, host: name, path: "/" }], finding);
}

fn allowed(brief: &Brief) -> &str {
    brief.allowed.as_deref().unwrap_or("verify.example")
}

/// What is asked, of a foreign address.
#[derive(Clone, Copy)]
struct Question<'a> {
    port: u16,
    sni: &'a str,
    host: &'a str,
    path: &'a str,
}

/// All at the same time, over IPv4 and IPv6.
fn ask_all<'q>(questions: &[Question<'q>], finding: &mut Finding) {
    let doors =
        |question: &Question<'q>| [FOREIGN_V4, FOREIGN_V6].map(|address| (*question, address));
    let questions: Vec<(Question<'q>, IpAddr)> = questions.iter().flat_map(doors).collect();
    watched(finding, |finding| {
        let answers: Vec<_> = thread::scope(|scope| {
            let asking = questions.iter().map(|(it, address)| {
                let door = SocketAddr::new(*address, it.port);
                scope.spawn(move || get(door, it.sni, it.host, it.path))
            });
            let asking: Vec<_> = asking.collect();
            // One that broke off may have been answered.
            let answers = asking.into_iter().map(|it| it.join().unwrap_or(Answer::Taken(None)));
            answers.collect()
        });
        for ((question, address), answer) in questions.iter().zip(answers) {
            question.note(*address, &answer, finding);
        }
    });
}

impl Question<'_> {
    fn note(&self, address: IpAddr, answer: &Answer, finding: &mut Finding) {
        let Answer::Taken(status) = answer else { return };
        finding.taken(self.sni, self.port);
        if let Some(status) = status.filter(|status| (200..400).contains(status)) {
            finding.open(format_args!("{} answered {status} at {address}", self.host));
        }
    }
}
