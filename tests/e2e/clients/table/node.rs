//! Which libraries of Node.js, and programs written in it?

use super::{CLIENT, Client, Needs, Speaks};

const NODE: Client = Client { trust: "`NODE_EXTRA_CA_CERTS`", ..CLIENT };

const DISPATCHER: &str = "undici.setGlobalDispatcher(new undici.EnvHttpProxyAgent());";

const AGENT: &str = "agent: new HttpsProxyAgent(process.env.https_proxy)";

pub(crate) const FETCH: Client = Client {
    name: "Node fetch",
    by_proxy: Needs::Words(DISPATCHER),
    notes: "from Node 24.5 (and 22.21) on, `NODE_USE_ENV_PROXY=1` is enough",
    command: "node -e 'const undici = require(\"undici\"); {more}
fetch(\"https://api.example.com/greeting\")
    .then(async (answer) => console.log(await answer.text()))'",
    ..NODE
};

pub(crate) const HTTPS: Client = Client {
    name: "Node https",
    by_proxy: Needs::Words(AGENT),
    notes: "of `https-proxy-agent`; or `NODE_USE_ENV_PROXY=1`, as for fetch",
    command: "node -e 'const { HttpsProxyAgent } = require(\"https-proxy-agent\");
const options = { {more} };
https.get(\"https://api.example.com/greeting\", options, (answer) => answer.pipe(process.stdout))'",
    ..NODE
};

pub(crate) const UNDICI: Client = Client {
    name: "undici",
    by_proxy: Needs::Words(DISPATCHER),
    command: "node -e 'const undici = require(\"undici\"); {more}
undici.request(\"https://api.example.com/greeting\")
    .then(async (answer) => console.log(await answer.body.text()))'",
    ..NODE
};

pub(crate) const AXIOS: Client = Client {
    name: "axios",
    command: "node -e 'require(\"axios\").get(\"https://api.example.com/greeting\")
    .then((answer) => console.log(answer.data))'",
    ..NODE
};

pub(crate) const WS: Client = Client {
    name: "ws",
    by_proxy: Needs::Words(AGENT),
    notes: "of `https-proxy-agent`",
    command: "node -e 'const { HttpsProxyAgent } = require(\"https-proxy-agent\");
const { WebSocket } = require(\"ws\");
const socket = new WebSocket(\"wss://api.example.com/greeting\", { {more} });
socket.on(\"message\", (text) => { console.log(String(text)); socket.close(); });'",
    ..NODE
};

pub(crate) const WSCAT: Client = Client {
    name: "wscat",
    by_proxy: Needs::Words("--proxy $https_proxy"),
    command: "# It ends with its input.
              sleep 3 | wscat {more} --connect wss://api.example.com/greeting \
              --execute hello --wait 1",
    ..NODE
};

pub(crate) const GRPC_JS: Client = Client {
    name: "grpc-js",
    speaks: Speaks::Grpc,
    notes: "it reads `https_proxy` too",
    command: "node -e 'const grpc = require(\"@grpc/grpc-js\");
const client = new grpc.Client(\"grpc.example.com:443\", grpc.credentials.createSsl());
const bytes = (value) => value;
client.makeUnaryRequest(\"/test.Greeter/Greet\", bytes, bytes, Buffer.alloc(0),
    (error, answer) => { console.log(String(error ?? answer)); client.close(); })'",
    ..NODE
};
