//! Which variables make which clients trust the CA?

/// What a variable is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TrustValue {
    /// The file with the CA and the system's roots: these clients believe that file alone.
    Bundle,
    /// The file with the CA alone: these clients add it to what they bring along.
    Ca,
    /// The same text everywhere.
    Text(&'static str),
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
    variable("NODE_EXTRA_CA_CERTS", TrustValue::Ca, "Node.js, npm, Bun"),
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
}
