//! Configuration of a control API.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use longwire_client::Address;
use longwire_network::Controller;
use longwire_runtime::{Directory, FileAccess, Grade};
use serde::{Deserialize, Serialize};

use crate::error::ControlError;
use crate::guard::{Files, Tokens, read_token};

/// Default rate limit, in requests/s.
pub const LIMIT_DEFAULT: u32 = 10_000;

/// Error for changes over TCP that name files without `--control-files`.
const NONE_OVER_TCP: &str = "changes over TCP cannot name files; start the run with \
                             --control-files DIR to allow those in DIR";

/// Addresses, tokens and limits of a control API.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses to listen on; without any, the control API is disabled.
    pub addresses: Vec<Address>,
    /// File with the token that allows changes.
    pub token_file: Option<PathBuf>,
    /// File with the token that allows reading.
    pub read_token_file: Option<PathBuf>,
    /// Directory of the files that changes may name. If `None`, changes over TCP may not name
    /// files, and changes over a Unix socket may name the files allowed by `access`.
    pub files: Option<PathBuf>,
    /// Files that changes over a Unix socket may name; the socket's owner could read them anyway.
    pub access: FileAccess,
    /// Rate limit over all connections, in requests/s, with bursts of up to one second.
    pub limit: u32,
    /// Default detail of /metrics.
    pub metrics: Detail,
    /// Live view.
    pub view: Option<ViewConfig>,
    /// Judges the run; if `None`, clients get no verdict.
    pub judge: Option<Judge>,
}

/// Detail level of links in /metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Totals over all links.
    #[default]
    Sum,
    /// Individual links.
    Each,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            addresses: Vec::new(),
            token_file: None,
            read_token_file: None,
            files: None,
            access: FileAccess::Any,
            limit: LIMIT_DEFAULT,
            metrics: Detail::default(),
            view: None,
            judge: None,
        }
    }
}

impl Config {
    /// Returns the files that changes may name.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub(crate) fn files(&self) -> Result<Files, ControlError> {
        let Some(directory) = &self.files else {
            return Ok(Files {
                unix: self.access.clone(),
                tcp: FileAccess::Nothing(NONE_OVER_TCP),
            });
        };
        let action = "--control-files: cannot open this directory (needs Linux 5.6)";
        let opened = Directory::open(directory);
        let opened = opened.map_err(ControlError::file(directory, action))?;
        let access = FileAccess::Beneath(Arc::new(opened));
        Ok(Files {
            unix: access.clone(),
            tcp: access,
        })
    }

    /// Reads the tokens.
    ///
    /// # Errors
    /// If a file is unreadable, readable by other users or contains no token, or if there is a TCP
    /// address but no token.
    pub(crate) fn tokens(&self) -> Result<Tokens, ControlError> {
        let token = |file: &Option<PathBuf>| file.as_deref().map(read_token).transpose();
        let (full, read) = (token(&self.token_file)?, token(&self.read_token_file)?);
        let same = full.is_some() && full == read;
        let tokens = Tokens::of(full, read);
        let tcp = |address: &&Address| matches!(address, Address::Tcp(_));
        if let Some(address) = self.addresses.iter().find(tcp)
            && tokens.is_empty()
        {
            return Err(ControlError::Usage(format!(
                "--control {address}: TCP needs a token; create one with `(umask 077; openssl \
                 rand -hex 32 > FILE)` and add --control-token-file FILE, or \
                 --control-read-token-file FILE for reading only; or use a Unix socket, such as \
                 --control /run/longwire/a.sock"
            )));
        }
        if same {
            return Err(ControlError::Usage(
                "--control-read-token-file holds the same token as --control-token-file, which \
                 allows changes; create another"
                    .to_owned(),
            ));
        }
        Ok(tokens)
    }
}

/// Configuration of a live view.
#[derive(Clone, Debug)]
pub struct ViewConfig {
    /// Address of the page; port 0 lets the system choose one.
    pub address: SocketAddr,
    /// Files of the page.
    pub files: &'static [PageFile],
}

/// Judges a run so far.
pub type Judge = fn(&Controller) -> Judgement;

/// A static file of the page.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// URL path; the index has `/`.
    pub path: &'static str,
    /// Media type.
    pub kind: &'static str,
    /// Content.
    pub content: &'static [u8],
}

/// Verdict on a run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Grade of the run.
    pub grade: Grade,
    /// Verdict as a sentence.
    pub line: String,
}
