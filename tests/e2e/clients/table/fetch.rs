//! Which programs and languages get a page?

use super::{CLIENT, Client, Needs};

pub(crate) const CURL: Client = Client {
    name: "curl",
    trust: "`CURL_CA_BUNDLE`",
    command: "curl --silent --show-error --fail https://api.example.com/greeting",
    ..CLIENT
};

pub(crate) const CURL_GNUTLS: Client = Client {
    name: "libcurl with GnuTLS",
    by_proxy: Needs::Words("CAINFO=$SSL_CERT_FILE"),
    trust: "the system's bundle",
    notes: "git's on Debian, and of many programs; by the proxy its `CURLOPT_CAINFO` has to be set",
    command: "python3 programs/gnutls_curl.py https://api.example.com/greeting {more}",
    ..CLIENT
};

pub(crate) const WGET: Client = Client {
    name: "wget",
    by_proxy: Needs::Words("--ca-certificate=$SSL_CERT_FILE"),
    trust: "the system's bundle",
    notes: "where it is built with OpenSSL, `SSL_CERT_FILE` is enough",
    command: "wget --no-verbose {more} -O - https://api.example.com/greeting",
    ..CLIENT
};

pub(crate) const GO: Client = Client {
    name: "Go net/http",
    trust: "`SSL_CERT_FILE`",
    command: "\"$CLIENTS/go-get\" https://api.example.com/greeting",
    ..CLIENT
};

pub(crate) const JAVA: Client = Client {
    name: "Java HttpClient",
    by_proxy: Needs::Words("-Dhttps.proxyHost=$PROXY_HOST -Dhttps.proxyPort=$PROXY_PORT"),
    trust: "`JAVA_TOOL_OPTIONS`",
    notes: "it reads no proxy variable, and says on stderr that it picked its options up",
    command: "java {more} programs/Get.java https://api.example.com/greeting",
    ..CLIENT
};

pub(crate) const RUBY: Client = Client {
    name: "Ruby Net::HTTP",
    trust: "`SSL_CERT_FILE`",
    notes: "it reads `http_proxy` for `https://` too",
    command: "ruby -r net/http -e 'puts Net::HTTP.get(URI(ARGV[0]))' \
              https://api.example.com/greeting",
    ..CLIENT
};

pub(crate) const PHP: Client = Client {
    name: "PHP curl",
    by_proxy: Needs::Words("-d curl.cainfo=$SSL_CERT_FILE"),
    trust: "the system's bundle",
    notes: "its streams read `SSL_CERT_FILE`, but no proxy variable",
    command: "php {more} programs/get.php https://api.example.com/greeting",
    ..CLIENT
};

pub(crate) const CHROMIUM: Client = Client {
    name: "Chromium",
    in_run: Needs::Words("--no-sandbox"),
    by_proxy: Needs::First(
        "mkdir -p ~/.pki/nssdb && certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n outgate -i \
         $NODE_EXTRA_CA_CERTS",
    ),
    trust: "a policy; NSS",
    notes: "its own sandbox takes namespaces, and a sandbox can't make any",
    command: "# The test is root, and root has to say so.
              [ $WAY = run ] || root=--no-sandbox
              chromium --headless {more} $root --disable-gpu --dump-dom \
              https://api.example.com/greeting",
    ..CLIENT
};
