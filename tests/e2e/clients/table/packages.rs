//! Which programs install packages? Each from a registry of the test's own.

use super::{CLIENT, Client, Needs};

/// A wheel with one module, and the index that names it.
const PYTHON_INDEX: &str = "python3 programs/wheel.py \"$GREETING\"";

/// A tarball and the document that names it.
const NPM_REGISTRY: &str = r#"
mkdir package npm
echo '{"name": "greeter", "version": "1.0.0"}' > package/package.json
echo "module.exports = '$GREETING'" > package/index.js
tar czf npm/greeter-1.0.0.tgz package
sum=$(openssl dgst -sha512 -binary npm/greeter-1.0.0.tgz | base64 -w 0)
cat > npm/greeter <<EOF
{"name": "greeter", "dist-tags": {"latest": "1.0.0"},
 "time": {"1.0.0": "2020-01-01T00:00:00.000Z"}, "versions": {"1.0.0":
 {"name": "greeter", "version": "1.0.0", "dist": {"integrity": "sha512-$sum",
  "tarball": "https://api.example.com/npm/greeter-1.0.0.tgz"}}}}
EOF"#;

/// A sparse index and one crate.
const CARGO_REGISTRY: &str = r#"
mkdir -p cargo/gr/ee greeter-1.0.0/src
printf '[package]\nname = "greeter"\nversion = "1.0.0"\n' > greeter-1.0.0/Cargo.toml
echo "// $GREETING" > greeter-1.0.0/src/lib.rs
tar czf cargo/greeter.crate greeter-1.0.0
sum=$(sha256sum cargo/greeter.crate | cut -d ' ' -f 1)
echo '{"dl": "https://api.example.com/cargo/{crate}.crate"}' > cargo/config.json
cat > cargo/gr/ee/greeter <<EOF
{"name":"greeter","vers":"1.0.0","deps":[],"cksum":"$sum","features":{},"yanked":false}
EOF"#;

/// A parent for other projects, and an extension, which is a jar without anything in it; so is what
/// Maven adds to each extension.
const MAVEN_REPOSITORY: &str = r#"
offer() {
  place="maven/$(echo "$1" | tr . /)/$2/$3"
  mkdir -p "$place"
  cat > "$place/$2-$3.pom" <<EOF
<project><modelVersion>4.0.0</modelVersion><groupId>$1</groupId><artifactId>$2</artifactId>
<version>$3</version><packaging>$4</packaging><description>$GREETING</description></project>
EOF
  [ "$4" = pom ] || python3 programs/empty_jar.py "$place/$2-$3.jar"
  for file in "$place"/*; do sha1sum "$file" | cut -d ' ' -f 1 > "$file.sha1"; done
}
offer com.example parent 1.0 pom
offer com.example extension 1.0 jar
offer org.codehaus.plexus plexus-utils 1.1 jar"#;

/// One package, and a list of packages that nobody signed.
const APT_REPOSITORY: &str = r#"
mkdir -p apt package/DEBIAN package/usr/share
printf 'Package: greeter\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@example.test>\n%s\n' \
  'Description: greets' > package/DEBIAN/control
echo "$GREETING" > package/usr/share/greeting
dpkg-deb --build --root-owner-group package apt/greeter.deb > made
{ cat package/DEBIAN/control
  echo "Filename: ./greeter.deb"
  echo "Size: $(stat -c %s apt/greeter.deb)"
  echo "SHA256: $(sha256sum apt/greeter.deb | cut -d ' ' -f 1)"
} > apt/Packages"#;

pub(crate) const PIP: Client = Client {
    name: "pip",
    trust: "`PIP_CERT`",
    notes: "a refused index looks empty to it; `pip -v` shows the refusal",
    offered: PYTHON_INDEX,
    command: "pip install -q --target to --index-url https://api.example.com/simple greeter && \
              PYTHONPATH=to python3 -c 'import greeter; print(greeter.TEXT)'",
    ..CLIENT
};

pub(crate) const UV: Client = Client {
    name: "uv",
    trust: "`SSL_CERT_FILE`",
    offered: PYTHON_INDEX,
    command: "uv pip install -q --python \"$(command -v python)\" --target to \
              --default-index https://api.example.com/simple greeter && \
              PYTHONPATH=to python3 -c 'import greeter; print(greeter.TEXT)'",
    ..CLIENT
};

pub(crate) const NPM: Client = Client {
    name: "npm",
    trust: "`npm_config_cafile`",
    offered: NPM_REGISTRY,
    command: "npm install --no-progress --loglevel error \
              --registry https://api.example.com/npm/ greeter && \
              node -e 'console.log(require(\"./node_modules/greeter\"))'",
    ..CLIENT
};

pub(crate) const YARN: Client = Client {
    name: "yarn 1",
    trust: "`npm_config_cafile`",
    offered: NPM_REGISTRY,
    command: "node \"$NODE_PATH/yarn/bin/yarn.js\" add --silent --cache-folder cache \
              --registry https://api.example.com/npm/ greeter && \
              node -e 'console.log(require(\"./node_modules/greeter\"))'",
    ..CLIENT
};

pub(crate) const YARN4: Client = Client {
    name: "yarn 4",
    by_proxy: Needs::First("export YARN_HTTPS_PROXY=$https_proxy"),
    trust: "`NODE_EXTRA_CA_CERTS`",
    notes: "and 2, 3; or `httpsProxy` in its settings",
    offered: NPM_REGISTRY,
    command: "echo '{}' > package.json && touch yarn.lock && export YARN_ENABLE_TELEMETRY=0 \
              YARN_NODE_LINKER=node-modules YARN_NPM_REGISTRY_SERVER=https://api.example.com/npm
              node \"$NODE_PATH/@yarnpkg/cli-dist/bin/yarn.js\" add greeter && \
              node -e 'console.log(require(\"./node_modules/greeter\"))'",
    ..CLIENT
};

pub(crate) const CARGO: Client = Client {
    name: "cargo",
    trust: "`CARGO_HTTP_CAINFO`",
    notes: "a sparse registry",
    offered: CARGO_REGISTRY,
    command: "mkdir -p .cargo src && touch src/lib.rs && cat > .cargo/config.toml <<EOF
[registries.own]
index = \"sparse+https://api.example.com/cargo/\"
EOF
cat > Cargo.toml <<EOF
[package]
name = \"project\"
[dependencies]
greeter = { version = \"1\", registry = \"own\" }
EOF
cargo fetch -q && cat .cargo/registry/src/*/greeter-1.0.0/src/lib.rs",
    ..CLIENT
};

pub(crate) const MAVEN: Client = Client {
    name: "Maven",
    by_proxy: Needs::Words("-Dhttps.proxyHost=$PROXY_HOST -Dhttps.proxyPort=$PROXY_PORT"),
    trust: "`JAVA_TOOL_OPTIONS`",
    notes: "or `<proxies>` in its settings; Java reads no proxy variable",
    offered: MAVEN_REPOSITORY,
    command: "cat > settings.xml <<EOF
<settings><localRepository>$HOME/repository</localRepository><mirrors><mirror>
<id>own</id><mirrorOf>*</mirrorOf><url>https://api.example.com/maven</url>
</mirror></mirrors></settings>
EOF
cat > pom.xml <<EOF
<project><modelVersion>4.0.0</modelVersion>
<parent><groupId>com.example</groupId><artifactId>parent</artifactId><version>1.0</version>
<relativePath/></parent><artifactId>project</artifactId><packaging>pom</packaging>
<build><extensions><extension><groupId>com.example</groupId><artifactId>extension</artifactId>
<version>1.0</version></extension></extensions></build></project>
EOF
mvn --batch-mode --quiet --settings settings.xml {more} validate && \
test -e repository/com/example/extension/1.0/extension-1.0.jar && \
cat repository/com/example/parent/1.0/parent-1.0.pom",
    ..CLIENT
};

pub(crate) const APT: Client = Client {
    name: "apt",
    in_run: Needs::Words("-o APT::Sandbox::User=root"),
    by_proxy: Needs::Words("-o Acquire::https::CAInfo=$SSL_CERT_FILE"),
    trust: "the system's bundle",
    notes: "update and download; the option where root runs it, for it can't become another user",
    offered: APT_REPOSITORY,
    command: "mkdir -p lists/partial cache/archives/partial && touch status && \
              echo 'deb [trusted=yes] https://api.example.com/apt ./' > sources.list && \
              # Where the test runs there is no other user either.
              APT_CONFIG=own.conf && echo 'APT::Sandbox::User \"root\";' > own.conf
              [ $WAY = run ] || export APT_CONFIG
              for action in update 'download greeter'; do
                  apt-get -q -o Dir::State=$HOME -o Dir::State::status=$HOME/status \
                      -o Dir::State::lists=$HOME/lists -o Dir::Cache=$HOME/cache \
                      -o Dir::Etc::SourceList=$HOME/sources.list -o Dir::Etc::SourceParts=- \
                      {more} $action || exit
              done
              dpkg-deb --fsys-tarfile greeter*.deb | tar xO ./usr/share/greeting",
    ..CLIENT
};
