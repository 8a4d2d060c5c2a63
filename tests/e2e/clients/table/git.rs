//! How does git fetch and push?

use super::{CLIENT, Client, Needs, Speaks};

/// A repository with a README; whoever gets as far as the host may push.
const REPOSITORY: &str = "git init -q work && cd work && echo \"$GREETING\" > README && \
                          git add README && git commit -qm first && cd .. && \
                          git clone -q --bare work git/r.git && \
                          git -C git/r.git config http.receivepack true";

/// Each way pushes a branch of its own, and clones that to show that it is there.
macro_rules! clone_and_push {
    ($repository:literal) => {
        concat!(
            $repository,
            "\ngit clone -q $REPOSITORY first && cd first && git checkout -qb by-$WAY && \
             cp README pushed && git add pushed && git commit -qm second && \
             git push -q origin by-$WAY && cd .. && \
             git clone -q -b by-$WAY $REPOSITORY second && cat second/pushed"
        )
    };
}

pub(crate) const HTTPS: Client = Client {
    name: "git over https",
    trust: "`GIT_SSL_CAINFO`",
    notes: "clone and push; the entry injects what the host asks for",
    offered: REPOSITORY,
    command: clone_and_push!("REPOSITORY=https://api.example.com/git/r.git"),
    ..CLIENT
};

pub(crate) const SSH: Client = Client {
    name: "git over ssh",
    speaks: Speaks::Ssh,
    by_proxy: Needs::Words("-o ProxyCommand='nc -X connect -x $PROXY_HOST:$PROXY_PORT %h %p'"),
    trust: "none needed",
    notes: "an entry with `\"protocol\": \"tcp\"` and `ports`; no agent's socket gets in, so it \
            takes a key of the sandbox's own",
    offered: REPOSITORY,
    command: clone_and_push!(
        "export GIT_SSH_COMMAND=\"ssh -F $SSH_CONFIG {more}\"
         REPOSITORY=ssh://git@ssh.example.com:2222$HOST_FOLDER/git/r.git"
    ),
    ..CLIENT
};
