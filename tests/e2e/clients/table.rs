//! Which clients are tried, and what does each need?

#[path = "table/fetch.rs"]
pub(super) mod fetch;
#[path = "table/git.rs"]
pub(super) mod git;
#[path = "table/node.rs"]
pub(super) mod node;
#[path = "table/packages.rs"]
pub(super) mod packages;
#[path = "table/python.rs"]
pub(super) mod python;

/// One row of the page, and the scripts of `/bin/sh` that show that it is true.
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) speaks: Speaks,
    pub(super) in_run: Needs,
    pub(super) by_proxy: Needs,
    /// How it comes to trust the CA.
    pub(super) trust: &'static str,
    pub(super) notes: &'static str,
    /// Puts what the client asks for into the host's folder, which is the working directory; the
    /// text to be found is in `$GREETING`.
    pub(super) offered: &'static str,
    /// Asks for it and prints the greeting. `{more}` stands where the words of a [`Needs`] go.
    pub(super) command: &'static str,
}

/// Which of the hosts it asks.
#[derive(Clone, Copy)]
pub(super) enum Speaks {
    Http,
    Grpc,
    Ssh,
}

/// What a client has to be told. The tests do what the page says.
#[derive(Clone, Copy)]
pub(super) enum Needs {
    Nothing,
    /// Some words more on its command line, or in its program.
    Words(&'static str),
    /// A command beforehand.
    First(&'static str),
}

/// A client that fetches a file and needs nothing.
const CLIENT: Client = Client {
    name: "",
    speaks: Speaks::Http,
    in_run: Needs::Nothing,
    by_proxy: Needs::Nothing,
    trust: "",
    notes: "",
    offered: "echo \"$GREETING\" > greeting",
    command: "",
};

impl Client {
    /// Its line on the page.
    pub(super) fn row(&self) -> String {
        let (in_run, by_proxy) = (self.in_run.cell(), self.by_proxy.cell());
        format!("| {} | {in_run} | {by_proxy} | {} | {} |", self.name, self.trust, self.notes)
    }

    /// The script for a way in which it needs this.
    pub(super) fn script(&self, needs: Needs) -> String {
        match needs {
            Needs::Nothing => self.command.replace("{more}", ""),
            Needs::Words(words) => self.command.replace("{more}", words),
            Needs::First(first) => format!("{first}\n{}", self.command.replace("{more}", "")),
        }
    }
}

impl Needs {
    fn cell(self) -> String {
        match self {
            Needs::Nothing => "as it is".to_owned(),
            Needs::Words(words) => format!("`{words}`"),
            Needs::First(first) => format!("first `{first}`"),
        }
    }
}
