//! Which variables make which clients trust the CA?

use std::path::Path;

use outgate_certs::JAVA_PASSWORD;

use crate::trust_files::TrustPaths;

/// What a variable is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TrustValue {
    /// The file with the CA and the system's roots: these clients believe that file alone.
    Bundle,
    /// The file with the CA alone: these clients add it to what they bring along.
    Ca,
    /// The folder with the same certificates, each in a file named by its subject's hash.
    Folder,
    /// Options of the Java virtual machine that name the trust store.
    Java,
    /// The same text everywhere.
    Text(&'static str),
}

impl TrustValue {
    /// The text, where the files lie at `paths`.
    pub(crate) fn text(self, paths: &TrustPaths) -> String {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        match self {
            TrustValue::Bundle => text(&paths.bundle),
            TrustValue::Ca => text(&paths.ca),
            TrustValue::Folder => text(&paths.folder),
            TrustValue::Java => java_options(&text(&paths.java)),
            TrustValue::Text(text) => text.to_owned(),
        }
    }
}

/// The virtual machine splits its options at white space, except in quotes.
fn java_options(path: &str) -> String {
    let quote = match path {
        path if path.contains('"') => "'",
        path if path.contains([' ', '\t', '\n', '\'']) => "\"",
        _ => "",
    };
    format!(
        "-Djavax.net.ssl.trustStore={quote}{path}{quote} \
         -Djavax.net.ssl.trustStorePassword={JAVA_PASSWORD}"
    )
}

/// One variable, and who reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustVariable {
    pub(crate) name: &'static str,
    pub(crate) value: TrustValue,
    pub(crate) readers: &'static str,
}

/// All of them. A client that reads none needs the CA in its own store; `docs/trust.md` says how.
pub(crate) const TRUST_VARIABLES: &[TrustVariable] = &[
    variable("SSL_CERT_FILE", TrustValue::Bundle, "OpenSSL, Go, Python, Ruby, PHP, .NET, uv"),
    variable("SSL_CERT_DIR", TrustValue::Folder, "OpenSSL, Go, Python, Ruby"),
    variable("CURL_CA_BUNDLE", TrustValue::Bundle, "curl"),
    variable("GIT_SSL_CAINFO", TrustValue::Bundle, "git"),
    variable("REQUESTS_CA_BUNDLE", TrustValue::Bundle, "Python requests, conda"),
    variable("PIP_CERT", TrustValue::Bundle, "pip"),
    variable("HTTPLIB2_CA_CERTS", TrustValue::Bundle, "Python httplib2"),
    variable("CARGO_HTTP_CAINFO", TrustValue::Bundle, "Cargo"),
    variable("AWS_CA_BUNDLE", TrustValue::Bundle, "AWS command line and SDKs"),
    variable("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", TrustValue::Bundle, "gcloud"),
    variable("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", TrustValue::Bundle, "gRPC (C++, Python, Ruby)"),
    variable("BUNDLE_SSL_CA_CERT", TrustValue::Bundle, "Bundler"),
    variable("HEX_CACERTS_PATH", TrustValue::Bundle, "Hex (Elixir)"),
    variable("PERL_LWP_SSL_CA_FILE", TrustValue::Bundle, "Perl LWP"),
    variable("NIX_SSL_CERT_FILE", TrustValue::Bundle, "Nix"),
    variable("JAVA_TOOL_OPTIONS", TrustValue::Java, "Java, Maven, Gradle, Kotlin, Scala"),
    variable("NODE_EXTRA_CA_CERTS", TrustValue::Ca, "Node.js, Yarn, Bun"),
    variable("npm_config_cafile", TrustValue::Bundle, "npm, pnpm, Yarn 1"),
    variable("DENO_CERT", TrustValue::Ca, "Deno"),
    variable("DENO_TLS_CA_STORE", TrustValue::Text("system,mozilla"), "Deno"),
];

const fn variable(name: &'static str, value: TrustValue, readers: &'static str) -> TrustVariable {
    TrustVariable { name, value, readers }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_variable_is_set_twice() {
        let names: HashSet<_> = TRUST_VARIABLES.iter().map(|variable| variable.name).collect();
        assert_eq!(names.len(), TRUST_VARIABLES.len());
    }

    #[test]
    fn the_page_on_trust_tells_of_every_variable() {
        let page = include_str!("../../docs/trust.md");
        for TrustVariable { name, value, readers } in TRUST_VARIABLES {
            let value = match value {
                TrustValue::Bundle => "bundle".to_owned(),
                TrustValue::Ca => "CA".to_owned(),
                TrustValue::Folder => "folder".to_owned(),
                TrustValue::Java => "trust store".to_owned(),
                TrustValue::Text(text) => format!("`{text}`"),
            };
            let line = format!("| `{name}` | {value} | {readers} |");
            assert!(page.contains(&line), "{line}");
        }
    }

    #[test]
    fn clients_that_add_to_their_own_roots_get_the_ca_alone() {
        let of =
            |name| TRUST_VARIABLES.iter().find(|variable| variable.name == name).unwrap().value;
        assert_eq!(of("NODE_EXTRA_CA_CERTS"), TrustValue::Ca);
        assert_eq!(of("SSL_CERT_FILE"), TrustValue::Bundle);
    }

    #[test]
    fn java_reads_a_path_with_blanks_as_one_option() {
        let password = "-Djavax.net.ssl.trustStorePassword=changeit";
        let option = |path: &str| format!("-Djavax.net.ssl.trustStore={path} {password}");
        assert_eq!(java_options("/run/outgate/x.jks"), option("/run/outgate/x.jks"));
        assert_eq!(java_options("/a b/it's"), option("\"/a b/it's\""));
        assert_eq!(java_options("/a \"b\""), option("'/a \"b\"'"));
    }
}
